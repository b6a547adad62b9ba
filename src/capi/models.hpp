// SPDX-License-Identifier: MIT
// The learned models that functions without a context ask.
#pragma once

#include "learn/model_store.hpp"

namespace tilewise::capi {

ModelStore& usual_models();  // those of the environment and of the library

}  // namespace tilewise::capi
