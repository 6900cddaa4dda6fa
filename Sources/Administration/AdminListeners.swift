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
    /// Where another process may listen at the port, too.
    let group: PortGroup?

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
        group = settings.sharesWithOthers ? PortGroup([port]) : nil
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

    private static func open(
        _ settings: AdministrationSettings, _ passed: inout PassedSockets
    ) throws(AdministrationError) -> ListeningSocket {
        func failure(_ reason: String) -> AdministrationError { .listen(address: settings.shown, reason: reason) }
        var address = SocketAddress(numericHost: settings.host, port: settings.port)
        if address == nil {
            do throws(ResolutionError) {
                address = try SocketAddress.resolve(host: settings.host, port: settings.port).first
            } catch { throw failure("\(error)") }
        }
        guard let address else { throw failure("\(settings.host) has no address") }
        do throws(SystemError) {
            if let socket = passed.claim(address, name: settings.passedNames.port) {
                return try socket.listeningSocket()
            }
            return try ListeningSocket.open(address, sharesPort: settings.sharesWithOthers, backlog: backlog)
        } catch { throw failure(SystemErrorText.text(of: error.code)) }
    }

    private static func open(
        _ path: String, _ settings: AdministrationSettings, _ passed: inout PassedSockets
    ) throws(AdministrationError) -> ListeningSocket {
        func failure(_ reason: String) -> AdministrationError { .socket(path: path, reason: reason) }
        guard path.utf8.count <= AdminSocket.maxPathLength else {
            throw failure("its path has more than \(AdminSocket.maxPathLength) bytes")
        }
        do throws(SystemError) {
            if let socket = passed.claim(SocketAddress(.unix(path: path)), name: settings.passedNames.socket) {
                return try socket.listeningSocket()
            }
            return try ListeningSocket.open(path: path, mode: 0o600, takesOver: settings.sharesWithOthers)
        } catch {
            switch error.code {
            case EADDRINUSE: throw failure("another process listens on it")
            case EEXIST: throw failure("there is a file of that name that is no socket")
            default: throw failure(SystemErrorText.text(of: error.code))
            }
        }
    }
}
