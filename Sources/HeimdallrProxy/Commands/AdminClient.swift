import Administration
import ArgumentParser
import Configuration
import HTTPMessage
import WireText

/// Options that choose the running proxy for a command.
struct AdminOptions: ParsableArguments {
    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: ArgumentHelp(
            "The running proxy's admin socket.",
            discussion: "Default: that of the configuration's admin section.", valueName: "path"),
        completion: .file())
    var socket: String?

    /// Asks the running proxy and prints its answer: a success to standard output, a failure to standard error.
    /// - Parameter exitZero: whether an answer that reports a problem counts as a success.
    /// - Throws: the errors of `ask`; `ExitStatus.failure` after printing a failure. Unless `exitZero` is true,
    ///   `.problemReported` after printing an answer that reports a problem.
    func perform(_ method: String, _ target: String, exitZero: Bool = true) throws {
        let answer = try ask(method, target)
        let text = ForeignText.lines(String(decoding: answer.body, as: UTF8.self))
        guard (200..<300).contains(answer.status) else {
            ErrorOutput.answer(text)
            throw ExitStatus.failure.error
        }
        CommandOutput.write(text)
        if answer.reportsProblem, !exitZero { throw ExitStatus.problemReported.error }
    }

    /// - Throws: `ExitStatus.failure` if no running proxy of this user or root answers; `.badConfiguration` if the
    ///   configuration is invalid; a usage error if there is none.
    /// - Parameter isQuiet: whether nothing is printed unless this fails.
    func ask(
        _ method: String, _ target: String, body: [UInt8] = [], type: String? = nil, isQuiet: Bool = false
    ) throws -> AdminClient.Answer {
        let paths = try candidates(isQuiet: isQuiet)
        for path in paths {
            do throws(AdminClient.Failure) {
                return try AdminClient(address: .unix(path: path, mode: nil)).send(
                    method, target, body: body, type: type)
            } catch {
                switch error {
                case .notListening: continue
                case .stranger(let sentence):
                    throw ExitStatus.failure.error(
                        "the admin socket \(path) is not used, and nothing was sent to it: \(sentence)")
                case .other(let sentence):
                    throw ExitStatus.failure.error("the proxy at \(path) can't be asked: \(sentence)")
                }
            }
        }
        let sockets = paths.isEmpty ? "" : " at \(paths.joined(separator: " or "))"
        let former =
            ". If admin.listen or admin.socket has changed, the running proxy still listens at its former address: "
            + "give that address, or restart the proxy"
        throw ExitStatus.failure.error(
            "no running proxy answers\(sockets); start one, or give --socket\(socket == nil ? former : "")")
    }

    /// Returns possible paths of the running proxy's socket, the likeliest first. Prints faults of the configuration.
    func candidates(isQuiet: Bool = false) throws -> [String] {
        if let socket { return [socket] }
        let (source, environment) = try options.choose()
        let settings: AdminSettings?
        do throws(ConfigurationError) { settings = try source.admin(environment) } catch {
            for problem in error.problems { ErrorOutput.error("\(problem)") }
            throw ExitStatus.badConfiguration.error
        }
        guard let admin = settings else {
            throw ExitStatus.failure.error(
                "the configuration has no admin section, so there is no running proxy to ask; write "
                    + "admin: {} into it, or give --socket")
        }
        // A program of another user may answer in the default folder, if another user made that folder.
        if !isQuiet, admin.socket == nil, let fault = AdminSocket.ownFolderFault() {
            ErrorOutput.warning("\(AdminSocket.ownFolder) is not used: \(fault)")
        }
        return Self.sockets(of: admin, environment: environment)
    }

    static func sockets(of admin: AdminSettings, environment: [String: String]) -> [String] {
        if let socket = admin.socket { return [socket] }
        guard case .tcp(_, let port) = admin.listen else { return [] }
        return AdminSocket.candidates(port: port, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
    }
}

/// A minimal HTTP/1.1 client for our own server, on its Unix socket or its port.
struct AdminClient {
    struct Answer {
        let head: ResponseHead
        let body: [UInt8]

        init?(_ bytes: [UInt8]) {
            var head = ResponseHead()
            var start = 0
            while let end = bytes[start...].firstRange(of: "\r\n".utf8)?.upperBound,
                let isLast = try? head.append(line: bytes.span.extracting(start..<end), allowHTTP2: false)
            {
                guard !isLast else {
                    self.head = head
                    body = Array(bytes[end...])
                    return
                }
                start = end
            }
            return nil
        }

        var status: Int { head.status }

        fileprivate var isWhole: Bool {
            switch head.framing {
            case .none: body.isEmpty
            case .length(let length): length == body.count
            case .chunked, .untilClose: false
            }
        }

        /// Whether the answer reports a degraded state, or a request that would be refused.
        var reportsProblem: Bool {
            let name = Array(AdminVerdict.field.lowercased().utf8)
            let verdict = head.fields.first { $0.name.equalsIgnoringCase(name, in: head.bytes.span) }
            return verdict?.value.string(in: head.bytes.span) == AdminVerdict.bad
        }
    }

    enum Failure: Error {
        /// Nothing listens at the address. The value is the system's reason.
        case notListening(String)
        /// Another user listens at the address, or would be able to.
        case stranger(String)
        case other(String)
    }

    let address: ListenAddress
    /// Time limit in seconds: enough for the two revocation requests of a logout.
    var timeout = 120

    /// Returns the first answer from one of these paths; `nil` if none answers. Blocks.
    static func first(
        of paths: [String], _ method: String, _ target: String, body: [UInt8] = [], timeout: Int = 120
    ) -> Answer? {
        for path in paths {
            let client = AdminClient(address: .unix(path: path, mode: nil), timeout: timeout)
            if let answer = try? client.send(method, target, body: body) { return answer }
        }
        return nil
    }

    /// Sends one request on a new connection. Blocks.
    func send(_ method: String, _ target: String, body: [UInt8] = [], type: String? = nil) throws(Failure) -> Answer {
        let connection: SocketConnection
        do throws(SystemCallError) { connection = try SocketConnection(to: address, timeout: timeout) } catch {
            let remedy = error.isDenied ? ": run this command as the user that runs the proxy, or as root" : ""
            throw error.isNotListening ? .notListening(error.sentence) : .other(error.sentence + remedy)
        }
        if case .unix(let path, _) = address {
            if let fault = Self.fault(ofPeer: connection.peer(), asking: ProcessIdentity.user) {
                throw .stranger(fault)
            }
            if let fault = AdminSocket.sharedFolderFault(folderOf: path) {
                throw .stranger("\(fault); give the socket a folder that only its user may write to (admin.socket)")
            }
        }
        var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.count)\r\n"
        if let type { head += "Content-Type: \(type)\r\n" }
        guard connection.send(Array((head + "Connection: close\r\n\r\n").utf8) + body) else {
            throw .other("it closed the connection")
        }
        guard let bytes = connection.receiveAll(limit: 16 << 20, within: .seconds(timeout)) else {
            throw .other("it did not answer within \(timeout) s")
        }
        guard let answer = Answer(bytes), answer.isWhole else {
            throw .other(
                bytes.isEmpty ? "it closed the connection; it may belong to another user" : "its answer is cut")
        }
        return answer
    }

    /// Returns a fault unless the peer is this user or root, because passwords and tokens use this connection.
    static func fault(ofPeer peer: UInt32?, asking user: UInt32) -> String? {
        guard let peer else { return "the system does not say who listens there" }
        guard peer != user, peer != 0 else { return nil }
        return
            "user \(peer) listens there, not user \(user) or root; if that is your proxy, run this command as user \(peer)"
    }
}
