// Which descriptors are connections of this process. A fork of it has them as well, and would keep
// each from ending with its link, or with this process.
#pragma once

namespace monarch::net {

void note_connection(int fd) noexcept;
void forget_connection(int fd) noexcept;

// In a fork: let go of all of them. Their numbers stay taken, by the null device, since what the
// parent knew them by is here as well, and may close them.
void leave_connections() noexcept;

}  // namespace monarch::net
