// SPDX-License-Identifier: MIT
// oneDNN started on this CPU: what its primitives, memories and reorders are made with and executed on. Shared by the peers
// that compare matrix products and convolutions.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "peer/onednn_api.hpp"

namespace tilewise::bench {

// An operation ready to execute, and its description, which says what it wants of its tensors.
struct Primitive {
    std::shared_ptr<void> desc, handle;
};

class OnednnEngine {
public:
    static Result<OnednnEngine> start(const std::string& path);

    const OnednnApi& api() const { return *api_; }
    Handle handle() const { return engine_; }
    std::string name() const;
    std::string details() const;

    std::shared_ptr<void> memory(ConstHandle desc, void* data) const;
    // Memory of its own in the form described.
    std::shared_ptr<void> memory(ConstHandle desc) const;
    Result<Primitive> primitive(Handle desc) const;  // owns the description from now on
    Result<Primitive> reorder(ConstHandle from, ConstHandle to) const;
    int execute(const Primitive& primitive, std::span<const ExecArg> args) const;  // and waits; kOk or an error

private:
    std::shared_ptr<const OnednnApi> api_;
    Handle engine_ = nullptr, stream_ = nullptr;  // live as long as the process
};

Error onednn_failed(const char* what, int status);

}  // namespace tilewise::bench
