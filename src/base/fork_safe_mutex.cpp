// SPDX-License-Identifier: MIT
#include "base/fork_safe_mutex.hpp"

#include <pthread.h>

namespace tilewise {

std::mutex& fork_safe_mutex() {
    // Never destroyed: other threads may still use it when static destructors run.
    static std::mutex& mutex = []() -> std::mutex& {
        auto* made = new std::mutex;
        pthread_atfork([] { fork_safe_mutex().lock(); }, [] { fork_safe_mutex().unlock(); },
                       [] { fork_safe_mutex().unlock(); });
        return *made;
    }();
    return mutex;
}

}  // namespace tilewise
