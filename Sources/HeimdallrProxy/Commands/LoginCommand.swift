import ArgumentParser
import QRCode
import WireText

struct LoginCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Sign in a person, so that a client gets its token.",
        discussion: """
            The client's grant type decides how. authorization_code and implicit: the command opens a browser, or prints \
            the address, and waits for the sign-in there. device_code: it prints a code, an address and a QR code, for a \
            browser on any device. password: it asks for user name and password, and keeps neither. The tokens go to the \
            running proxy; this command never sees them.

            Use --paste over SSH, or where redirect_uri belongs to another program. It reads the last address of the \
            browser from standard input, even if the browser could not show that page.

            The exit code is 0 once the client has its token, else 1. Ctrl-C ends the attempt.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(help: "The client's name in the configuration.")
    var client: String

    @Flag(help: "Read the address that the browser was sent to from standard input.")
    var paste = false

    func run() throws {
        Interruption.watch()
        let path = "/login/\(PercentEncoding.uri.encode(client))"
        let notes: [String]
        let begun = try expect(options.ask("POST", path + (paste ? "?paste=true" : "")), as: Begun.init)
        switch begun.method {
        case "password": notes = try askForPassword(path)
        case "device": notes = try wait(begun, path) { showDevice(begun) }
        case "browser": notes = try wait(begun, path) { showBrowser(begun.url ?? "") }
        default: notes = try readAddress(begun, path)
        }
        Self.say("\(client) is signed in.")
        for note in notes { Self.say(note) }
    }

    // MARK: Answers of the proxy

    private struct Begun {
        var method: String
        var ticket: String?
        var url: String?
        var userCode: String?
        var verificationURI: String?
        var verificationURIComplete: String?
        var expiresInSeconds: Double?

        init?(_ answer: JSONValue) {
            guard let method = answer["method"]?.string else { return nil }
            self.method = method
            ticket = answer["ticket"]?.string
            url = answer["url"]?.string
            userCode = answer["user_code"]?.string
            verificationURI = answer["verification_uri"]?.string
            verificationURIComplete = answer["verification_uri_complete"]?.string
            if case .number(let text) = answer["expires_in_seconds"] { expiresInSeconds = Double(text) }
        }
    }

    private struct Progress {
        var state: String
        var message: String?
        /// Scopes that were not granted.
        var notes: [String] = []

        init?(_ answer: JSONValue) {
            guard let state = answer["state"]?.string else { return nil }
            self.state = state
            message = answer["message"]?.string
            if case .array(let notes) = answer["notes"] { self.notes = notes.compactMap(\.string) }
        }
    }

    private func expect<Value>(_ answer: AdminClient.Answer, as read: (JSONValue) -> Value?) throws -> Value {
        guard answer.status == 200, let value = (try? JSONParser.parse(answer.body)).flatMap(read) else {
            throw Self.failure(String(decoding: answer.body, as: UTF8.self))
        }
        return value
    }

    // MARK: A browser, or another device

    /// - Returns: notes on scopes that were not granted.
    private func wait(_ begun: Begun, _ path: String, _ show: () -> Void) throws -> [String] {
        let path = "\(path)/\(begun.ticket ?? "")"
        show()
        let progress = ProgressLine(
            "Waiting for somebody to sign in", seconds: Int(max(0, min(begun.expiresInSeconds ?? 600, 1e9))))
        defer { progress.end() }
        while true {
            progress.step()
            Terminal.pause(seconds: 1)
            if Interruption.hasCome {
                _ = try? options.ask("DELETE", path)
                progress.end()
                throw Self.failure("Cancelled; nothing has changed.")
            }
            let answer = try expect(options.ask("GET", path), as: Progress.init)
            switch answer.state {
            case "done": return answer.notes
            case "failed":
                progress.end()
                throw Self.failure(Self.sentence(answer.message ?? "the sign-in failed"))
            default: continue
            }
        }
    }

    private func showBrowser(_ url: String) {
        if Browser.open(url) {
            Self.say("A browser was opened. If none shows, open this address:\n\n    \(url)\n")
        } else {
            Self.say("Open this address in a browser on this machine:\n\n    \(url)\n")
            Self.say("No browser here? Press Ctrl-C, and sign in with --paste.\n")
        }
    }

    private func showDevice(_ begun: Begun) {
        let address = begun.verificationURI ?? ""
        Self.say(
            "Open this address in any browser, and type in the code:\n\n    \(address)\n    \(begun.userCode ?? "")\n")
        if Terminal.showsErrors, let code = QRCode(begun.verificationURIComplete ?? address) {
            Self.say(code.terminalText)
        }
    }

    // MARK: An address brought back

    private func readAddress(_ begun: Begun, _ path: String) throws -> [String] {
        let path = "\(path)/\(begun.ticket ?? "")"
        Self.say("Open this address in a browser, and sign in:\n\n    \(begun.url ?? "")\n")
        Self.say(
            "In the end the browser is sent to an address that it may not be able to show. Copy that address and paste it "
                + "here:")
        guard let line = Terminal.readLine(), !line.allSatisfy(\.isWhitespace) else {
            _ = try? options.ask("DELETE", path)
            throw Self.failure("Cancelled; nothing has changed.")
        }
        let answer = try expect(
            options.ask("POST", path, body: Array(Self.trimmed(line).utf8), type: "text/plain"), as: Progress.init)
        guard answer.state == "done" else { throw Self.failure(Self.sentence(answer.message ?? "the sign-in failed")) }
        return answer.notes
    }

    // MARK: User name and password

    private func askForPassword(_ path: String) throws -> [String] {
        guard Terminal.givesInput else {
            throw Self.failure("Client \(client) wants a user name and a password: run this at a terminal.")
        }
        OutputDescriptor.standardError.write("User name for \(client): ")
        guard let username = Terminal.readLine(), !username.isEmpty else { throw Self.failure("Cancelled.") }
        OutputDescriptor.standardError.write("Password (not shown): ")
        guard let password = Terminal.readSecretLine() else { throw Self.failure("Cancelled.") }
        let body = "username=\(PercentEncoding.uri.encode(username))&password=\(PercentEncoding.uri.encode(password))"
        let answer = try expect(
            options.ask("POST", path, body: Array(body.utf8), type: "application/x-www-form-urlencoded"),
            as: Progress.init)
        return answer.notes
    }

    // MARK: Output

    /// Writes to standard error. Standard output is for programs.
    private static func say(_ text: String) { OutputDescriptor.standardError.write(text + "\n") }

    private static func failure(_ text: String) -> ExitCode {
        Complaint.error(trimmed(text))
        return ExitStatus.failure.error
    }

    private static func sentence(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() + "." }

    private static func trimmed(_ text: String) -> String {
        let head = text.drop(while: \.isWhitespace)
        return String(head.reversed().drop(while: \.isWhitespace).reversed())
    }
}

/// One line with the remaining time, at a terminal only.
private final class ProgressLine {
    private let text: String
    private let deadline: ContinuousClock.Instant
    private let isShown = Terminal.showsErrors
    private var isOpen = false

    init(_ text: String, seconds: Int) {
        self.text = text
        deadline = .now + .seconds(seconds)
    }

    func step() {
        guard isShown else { return }
        let left = max(0, Int(ContinuousClock.now.duration(to: deadline).components.seconds))
        isOpen = true
        OutputDescriptor.standardError.write("\r\u{1B}[K\(text), \(left / 60) min \(left % 60) s left …")
    }

    func end() {
        guard isOpen else { return }
        isOpen = false
        OutputDescriptor.standardError.write("\r\u{1B}[K")
    }
}

/// A browser of the desktop that this terminal belongs to.
private enum Browser {
    /// - Returns: `false` without a desktop, or without a program that opens addresses.
    static func open(_ url: String) -> Bool {
        let environment = ProcessEnvironment.all
        guard environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil,
            environment["SSH_CONNECTION"] == nil
        else { return false }
        return
            (try? ChildProgram(["xdg-open", url], environment: environment.filter { !$0.key.hasPrefix("HEIMDALLR_") }))
            != nil
    }
}
