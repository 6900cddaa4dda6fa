import CLinux
import Glibc

/// A listening socket passed to this process at its start. sd_listen_fds(3).
public struct PassedSocket: Sendable, Equatable {
    public let descriptor: Int32
    /// `FileDescriptorName=` of systemd.socket(5).
    public let name: String
    public let address: SocketAddress
    /// Permissions of the Unix socket's file; `nil` for TCP, and if this process does not see the file.
    public let mode: UInt16?
    /// The user of the enclosed programs whose network namespace the socket is in; `nil` for one of our own namespace.
    public private(set) var enclosed: PeerCredentials?

    /// Reason why a descriptor is unusable. In the reason, "it" is the descriptor, which messages name first.
    public struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String
        init(_ description: String) { self.description = description }
    }

    /// Checks the descriptor, and sets it close-on-exec and non-blocking.
    public init(_ descriptor: Int32, name: String) throws(Fault) {
        guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) >= 0 else { throw Fault("it is not open") }
        guard let type = Self.option(SO_TYPE, of: descriptor) else { throw Fault("it is no socket") }
        let domain = Self.option(SO_DOMAIN, of: descriptor)
        guard domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX else {
            throw Fault("it is neither a TCP socket nor a Unix socket")
        }
        guard type == Int32(SOCK_STREAM.rawValue) else {
            throw Fault("it is no stream socket: in the socket unit, write ListenStream= instead of ListenDatagram=")
        }
        guard Self.option(SO_ACCEPTCONN, of: descriptor) == 1 else {
            throw Fault("it does not listen: with systemd, write Accept=no in the socket unit")
        }
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0 else { throw Fault("it is not open") }
        // Another owner of the socket can clear O_NONBLOCK at any time. This timeout then limits accept(2) (socket(7)).
        guard setOption(SO_RCVTIMEO, to: timeval(tv_sec: 0, tv_usec: 1000), on: descriptor) == 0 else {
            throw Fault("it can't be given a timeout: \(SystemError("setsockopt"))")
        }
        self.descriptor = descriptor
        self.name = name
        if domain == AF_UNIX {
            let path = try Self.path(of: descriptor)
            address = SocketAddress(.unix(path: path))
            mode = UnixSocketFile.mode(path)
        } else {
            guard let address = SocketAddress(own: descriptor) else { throw Fault("its address is unknown") }
            self.address = address
            mode = nil
        }
    }

    /// Checks a socket of an enclosure's namespace. No other process has it.
    /// - Parameter process: the first of the enclosed programs. All have its user.
    public init(enclosed descriptor: Int32, process: PeerCredentials) throws(Fault) {
        try self.init(descriptor, name: "")
        enclosed = process
    }

    /// Closes the descriptor. Called once, and for no socket that a later configuration may use.
    public func close() { Glibc.close(descriptor) }

    /// Duplicates the socket for one loop. The original stays open, so that a changed configuration can use it again.
    /// - Throws: `SystemError` without free descriptors.
    public func listeningSocket() throws(SystemError) -> ListeningSocket {
        var own = ListeningSocket(descriptor: descriptor, address: address)
        own.isPassed = enclosed == nil
        own.enclosed = enclosed
        return try own.duplicate()
    }

    /// Sets O_NONBLOCK again. Without this flag, each accept would wait for the timeout.
    static func restoreNonBlocking(_ descriptor: Int32) {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, flags & O_NONBLOCK == 0 else { return }
        _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }

    /// Path of a Unix socket. unix(7).
    private static func path(of descriptor: Int32) throws(Fault) -> String {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let asked = unsafe withKernelAddress(&address) { address, _ in unsafe getsockname(descriptor, address, &length)
        }
        let count = Int(length) - MemoryLayout<sa_family_t>.size
        let bytes = unsafe withUnsafeBytes(of: &address.sun_path) { bytes in
            unsafe Array(bytes.prefix(max(0, min(count, bytes.count))))
        }
        guard asked == 0, let first = bytes.first else { throw Fault("it has no address") }
        guard first != 0 else {
            throw Fault("it is an abstract Unix socket, which every user may use: write a path in ListenStream=")
        }
        return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}

extension PassedSocket: CustomStringConvertible {
    /// `127.0.0.1:8080 (descriptor 3, FileDescriptorName=proxy)`
    public var description: String { "\(address) (descriptor \(descriptor), FileDescriptorName=\(name))" }
}

extension UnixSocketFile {
    /// Permissions of the socket file at `path`.
    static func mode(_ path: String) -> UInt16? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        return UInt16(status.st_mode & 0o777)
    }
}
