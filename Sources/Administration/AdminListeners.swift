import Glibc
import HTTPServer
import Reactor

extension ServerSettings {
    /// Of both listeners of the administration.
    static let administration: ServerSettings = {
        var settings = ServerSettings()
        settings.headerTimeout = Timeout(.seconds(10))
        settings.idleTimeout = Timeout(.seconds(10))
        settings.requestTimeout = Timeout(.seconds(10))
        settings.stallTimeout = Timeout(.seconds(30))
        settings.maxHeaderBytes = 16 * 1024
        settings.maxFieldBytes = 8 * 1024
        settings.maxFields = 100
        settings.maxConnections = 256
        settings.whenFull = .replace
        settings.pipelinePause = Timeout(.milliseconds(200))
        return settings
    }()
}

/// The sockets of the administration, bound, and nobody accepts yet.
struct AdminListeners: Sendable {
    let port: ListeningSocket
    let command: ListeningSocket

    /// Longer bodies get 413.
    static let maxBodyBytes = 64 * 1024
    /// Connections to the port that wait to be accepted. A client that connects and leaves again without a pause fills every
    /// queue. One that is short is full often, and who finds it full comes again a second later (listen(2): the SYN is
    /// lost); one that is long takes its time to be worked off.
    private static let backlog: Int32 = 1024

    /// - Throws: `AdministrationError`. Where both are taken it is about the port: that is what one can do something
    ///   about, since the socket's name is made of it.
    init(_ settings: AdministrationSettings, socketPath: String) throws(AdministrationError) {
        var passed = settings.passed
        let port = try Self.open(settings, &passed)
        do throws(AdministrationError) {
            command = try Self.open(socketPath, settings, &passed)
        } catch {
            port.close()
            throw error
        }
        self.port = port
    }

    /// Ours, and root's, who can be anybody anyway, whatever the mode of the socket's file says.
    static func admits(_ peer: PeerCredentials?) -> Bool {
        peer.map { [AdminSocket.user, 0].contains($0.user) } ?? false
    }

    /// For sockets that nobody accepts from.
    func close() {
        port.close()
        command.close()
    }

    /// Finds what keeps the administration from listening, whoever listens there now. Takes and makes nothing.
    static func check(_ settings: AdministrationSettings) throws(AdministrationError) {
        let address = try address(settings)
        var passed = settings.passed
        if passed.claim(address, name: settings.passedNames.port) == nil {
            do throws(SystemError) { try ListeningSocket.probe(address) } catch { throw failure(error, settings) }
        }
        guard let path = settings.socket else { return }
        try checkLength(path)
        let socket = SocketAddress(.unix(path: path))
        guard passed.claim(socket, name: settings.passedNames.socket) == nil else { return }
        do throws(SystemError) { try ListeningSocket.probe(socket) } catch { throw failure(error, path) }
    }

    private static func address(_ settings: AdministrationSettings) throws(AdministrationError) -> SocketAddress {
        if let address = SocketAddress(numericHost: settings.host, port: settings.port) { return address }
        do throws(ResolutionError) {
            if let first = try SocketAddress.resolve(host: settings.host, port: settings.port).first { return first }
        } catch { throw .listen(address: settings.shown, reason: "\(error)") }
        throw .listen(address: settings.shown, reason: "\(settings.host) has no address")
    }

    private static func open(
        _ settings: AdministrationSettings, _ passed: inout PassedSockets
    ) throws(AdministrationError) -> ListeningSocket {
        let address = try address(settings)
        do throws(SystemError) {
            if let socket = passed.claim(address, name: settings.passedNames.port) {
                return try socket.listeningSocket()
            }
            return try ListeningSocket.open(address, sharesPort: false, backlog: backlog)
        } catch { throw failure(error, settings) }
    }

    private static func failure(_ error: SystemError, _ settings: AdministrationSettings) -> AdministrationError {
        .listen(address: settings.shown, reason: SystemErrorText.text(of: error.code))
    }

    private static func checkLength(_ path: String) throws(AdministrationError) {
        guard path.utf8.count <= AdminSocket.maxPathLength else {
            throw .socket(path: path, reason: "its path has more than \(AdminSocket.maxPathLength) bytes")
        }
    }

    private static func open(
        _ path: String, _ settings: AdministrationSettings, _ passed: inout PassedSockets
    ) throws(AdministrationError) -> ListeningSocket {
        try checkLength(path)
        do throws(SystemError) {
            if let socket = passed.claim(SocketAddress(.unix(path: path)), name: settings.passedNames.socket) {
                return try socket.listeningSocket()
            }
            return try ListeningSocket.open(path: path, mode: 0o600)
        } catch { throw failure(error, path) }
    }

    private static func failure(_ error: SystemError, _ path: String) -> AdministrationError {
        switch error.code {
        case EADDRINUSE: .socket(path: path, reason: "another process listens on it")
        case EEXIST: .socket(path: path, reason: "there is a file of that name that is no socket")
        default: .socket(path: path, reason: SystemErrorText.text(of: error.code))
        }
    }
}
