import Glibc
import HTTPServer
import Reactor
import WireText

extension ServerSettings {
    static let administration: ServerSettings = {
        var settings = ServerSettings()
        settings.headerTimeout = Timeout(.seconds(10))
        settings.idleTimeout = Timeout(.seconds(10))
        settings.requestTimeout = Timeout(.seconds(10))
        settings.stallTimeout = Timeout(.seconds(30))
        settings.maxHeaderBytes = 16 * 1024
        settings.maxFieldBytes = 8 * 1024
        settings.maxFields = 100
        settings.ownCookies = "heimdallr-"
        settings.maxConnections = 256
        settings.whenFull = .replace
        settings.pipelinePause = Timeout(.milliseconds(200))
        return settings
    }()
}

/// Bound sockets of the administration. They do not accept connections yet.
struct AdminListeners: Sendable {
    let port: ListeningSocket
    let command: ListeningSocket

    static let maxBodyBytes = 64 * 1024
    /// Length of the accept queue. A full queue drops the SYN, and the client retries after a second (listen(2)). A
    /// longer queue would take longer to drain after a flood of connections.
    private static let backlog: Int32 = 1024

    /// - Throws: `AdministrationError`. If both addresses are in use, the error names the port.
    init(_ settings: AdministrationSettings, socketPath: String) throws(AdministrationError) {
        var passed = settings.passed
        let port = try Self.first(of: try Self.ports(settings)) { target throws(SystemError) in
            try Self.claim(target, &passed) { address throws(SystemError) in
                try ListeningSocket.open(address, sharesPort: false, backlog: Self.backlog)
            }
        }
        do throws(AdministrationError) {
            command = try Self.first(of: [try Self.socket(socketPath, settings)]) { target throws(SystemError) in
                try Self.claim(target, &passed) { _ throws(SystemError) in
                    try ListeningSocket.open(path: socketPath, mode: 0o600)
                }
            }
        } catch {
            port.close()
            throw error
        }
        self.port = port
    }

    /// Whether the socket's peer is this user or root. An inherited socket's file may have a mode that admits others.
    static func admits(_ peer: PeerCredentials?) -> Bool {
        peer.map { [AdminSocket.user, 0].contains($0.user) } ?? false
    }

    /// Closes both sockets. Call this only if no server has taken them.
    func close() {
        port.close()
        command.close()
    }

    /// Checks whether the administration could listen, and changes nothing. An address in use is not an error.
    static func check(_ settings: AdministrationSettings) throws(AdministrationError) {
        var passed = settings.passed
        func probe(_ target: Target) throws(SystemError) {
            guard passed.claim(target.address, name: target.name) == nil else { return }
            try ListeningSocket.probe(target.address)
        }
        try first(of: try ports(settings), probe)
        if let path = settings.socket { try first(of: [try socket(path, settings)], probe) }
    }

    /// Returns the result for the first target whose address this machine has.
    /// - Throws: the error of that target; if the machine has none of the addresses, the error of the first target.
    private static func first<Result>(
        of targets: [Target], _ body: (Target) throws(SystemError) -> Result
    ) throws(AdministrationError) -> Result {
        var failure: AdministrationError?
        for target in targets {
            do throws(SystemError) { return try body(target) } catch {
                failure = failure ?? target.failure(error)
                guard error.isForeignAddress else { throw target.failure(error) }
            }
        }
        throw failure ?? .listen(address: "", reason: "there is no address")
    }

    /// An address to listen on.
    private struct Target {
        let address: SocketAddress
        /// Name of the inherited socket for this address.
        let name: String
        let failure: (SystemError) -> AdministrationError
    }

    private static func ports(_ settings: AdministrationSettings) throws(AdministrationError) -> [Target] {
        try addresses(settings).map { address in
            Target(address: address, name: settings.passedNames.port) {
                .listen(address: settings.shown, reason: reason($0))
            }
        }
    }

    /// Addresses of the port's host, the preferred one first. `[::]` is every address (ipv6(7)), also on a kernel without
    /// IPv6, so that one configuration fits all nodes of a cluster.
    static func addresses(_ settings: AdministrationSettings) throws(AdministrationError) -> [SocketAddress] {
        if let address = SocketAddress(numericHost: settings.host, port: settings.port) {
            guard settings.host == "::" else { return [address] }
            return [address, SocketAddress(.ipv4(address: 0, port: settings.port))]
        }
        do throws(ResolutionError) {
            return try SocketAddress.resolve(host: settings.host, port: settings.port)
        } catch { throw .listen(address: settings.shown, reason: "\(error)") }
    }

    private static func socket(
        _ path: String, _ settings: AdministrationSettings
    ) throws(AdministrationError) -> Target {
        guard path.utf8.count <= AdminSocket.maxPathLength else {
            throw .socket(path: path, reason: "its path has more than \(AdminSocket.maxPathLength) bytes")
        }
        return Target(address: SocketAddress(.unix(path: path)), name: settings.passedNames.socket) { error in
            switch error.code {
            case EADDRINUSE: .socket(path: path, reason: "another process listens on it")
            case EEXIST: .socket(path: path, reason: "a file of that name exists and is not a socket")
            default: .socket(path: path, reason: reason(error))
            }
        }
    }

    /// Usual reasons why listening fails, with advice.
    private static func reason(_ error: SystemError) -> String {
        switch error.code {
        case EADDRINUSE: "the address is in use: end the process that listens there, or write another address"
        case EADDRNOTAVAIL, EAFNOSUPPORT: "this machine has no such address"
        case EACCES, EPERM: "permission denied"
        case ENOENT: "its folder does not exist"
        case ENOTDIR: "a part of its path is not a folder"
        default: MachineShortage(errno: error.code).map { "\($0.fault): \($0.remedy)" } ?? "system error \(error.code)"
        }
    }

    /// Returns the inherited socket for the target, or opens a new socket.
    private static func claim(
        _ target: Target, _ passed: inout PassedSockets,
        or open: (SocketAddress) throws(SystemError) -> ListeningSocket
    ) throws(SystemError) -> ListeningSocket {
        guard let socket = passed.claim(target.address, name: target.name) else { return try open(target.address) }
        return try socket.listeningSocket()
    }
}
