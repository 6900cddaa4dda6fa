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

    @OptionGroup var target: ClientOptions

    @Flag(help: "Read the browser's last address from standard input.")
    var paste = false

    private var client: String { target.client }
    private var options: AdminOptions { target.options }

    func run() throws {
        Interruption.watch()
        let path = "/login/\(PercentEncoding.uri.encode(client))"
        let begun = try ask("POST", path + (paste ? "?paste=true" : ""))
        let attempt = "\(path)/\(begun["ticket"]?.string ?? "")"
        let done: JSONValue
        switch begun["method"]?.string {
        case "password": done = try askForPassword(path)
        case "device":
            showDevice(begun)
            done = try wait(begun, attempt)
        case "browser":
            showBrowser(begun["url"]?.string ?? "")
            done = try wait(begun, attempt)
        default: done = try readAddress(begun["url"]?.string ?? "", attempt)
        }
        Self.say("\(client) is signed in.")
        // The notes name the person, and scopes that were not granted.
        for note in done["notes"]?.texts ?? [] { Self.say(note) }
    }

    private func ask(_ method: String, _ target: String, body: [UInt8] = [], type: String? = nil) throws -> JSONValue {
        let answer = try options.ask(method, target, body: body, type: type)
        guard answer.status == 200, let value = try? JSONParser.parse(answer.body) else {
            throw Self.failure(String(decoding: answer.body, as: UTF8.self))
        }
        return value
    }

    private func cancel(_ attempt: String) -> any Error {
        _ = try? options.ask("DELETE", attempt)
        return Self.failure("Cancelled; nothing has changed.")
    }

    private func wait(_ begun: JSONValue, _ attempt: String) throws -> JSONValue {
        let seconds = if case .number(let text)? = begun["expires_in_seconds"] { Double(text) ?? 600 } else { 600.0 }
        let deadline = ContinuousClock.now + .seconds(Int(max(0, min(seconds, 1e9))))
        defer { Terminal.showProgress("") }
        while true {
            let left = max(0, Int(ContinuousClock.now.duration(to: deadline).components.seconds))
            Terminal.showProgress("Waiting for somebody to sign in, \(left / 60) min \(left % 60) s left …")
            Terminal.pause(seconds: 1)
            if Interruption.hasCome {
                Terminal.showProgress("")
                throw cancel(attempt)
            }
            let answer = try ask("GET", attempt)
            switch answer["state"]?.string {
            case "done": return answer
            case "failed", nil:
                Terminal.showProgress("")
                throw Self.refusal(answer)
            default: continue
            }
        }
    }

    private func showBrowser(_ url: String) {
        if Self.openBrowser(url) {
            Self.say("A browser was opened. If none shows, open this address:\n\n    \(url)\n")
        } else {
            Self.say("Open this address in a browser on this machine:\n\n    \(url)\n")
            Self.say(
                "No browser here? Press Ctrl-C, and sign in with --paste; or see \"The browser is elsewhere\" in "
                    + "docs/administration.md.\n")
        }
    }

    private func showDevice(_ begun: JSONValue) {
        let address = begun["verification_uri"]?.string ?? ""
        let code = begun["user_code"]?.string ?? ""
        Self.say("Open this address in any browser, and type in the code:\n\n    \(address)\n    \(code)\n")
        guard Terminal.isStandardError, Terminal.showsUnicode,
            let code = QRCode(begun["verification_uri_complete"]?.string ?? address),
            code.terminalColumns <= Terminal.columns
        else { return }
        Self.say(code.terminalText)
    }

    private func readAddress(_ url: String, _ attempt: String) throws -> JSONValue {
        Self.say("Open this address in a browser, and sign in:\n\n    \(url)\n")
        var prompt =
            "After the sign-in, the browser opens an address that it may not be able to show. Copy that address and "
            + "paste it here:"
        while true {
            guard let text = Terminal.readPaste(prompt), !text.allSatisfy(\.isWhitespace) else { throw cancel(attempt) }
            let answer = try ask("POST", attempt, body: Array(Self.trimmed(text).utf8), type: "text/plain")
            switch answer["state"]?.string {
            case "done": return answer
            case "again": prompt = "\(answer["message"]?.string ?? "") Paste the address again, or press Ctrl-C:"
            default: throw Self.refusal(answer)
            }
        }
    }

    private func askForPassword(_ path: String) throws -> JSONValue {
        guard Terminal.isStandardInput else {
            throw Self.failure("Client \(client) needs a user name and a password: run this at a terminal.")
        }
        OutputDescriptor.standardError.write("User name for \(client): ")
        guard let username = Terminal.readLine(), !username.isEmpty else { throw Self.failure("Cancelled.") }
        OutputDescriptor.standardError.write("Password (not shown): ")
        guard let password = Terminal.readSecretLine() else { throw Self.failure("Cancelled.") }
        let body = "username=\(PercentEncoding.uri.encode(username))&password=\(PercentEncoding.uri.encode(password))"
        return try ask("POST", path, body: Array(body.utf8), type: "application/x-www-form-urlencoded")
    }

    /// Writes to standard error. Standard output is for programs.
    private static func say(_ text: String) { OutputDescriptor.standardError.write(text + "\n") }

    private static func failure(_ text: String) -> ExitCode {
        ErrorOutput.error(trimmed(text))
        return ExitStatus.failure.error
    }

    private static func refusal(_ answer: JSONValue) -> any Error {
        let text = answer["message"]?.string ?? "the sign-in failed"
        return failure(text.prefix(1).uppercased() + text.dropFirst() + ".")
    }

    private static func trimmed(_ text: String) -> String {
        let head = text.drop(while: \.isWhitespace)
        return String(head.reversed().drop(while: \.isWhitespace).reversed())
    }

    /// Opens a browser: that of `BROWSER`, which also workspaces and WSL set without a desktop, or else that of the desktop
    /// of this terminal.
    /// - Returns: `false` over SSH or without a desktop, if `BROWSER` is not set; or if no program can be started.
    private static func openBrowser(_ url: String) -> Bool {
        let environment = ProcessEnvironment.all
        let withoutSecrets = environment.filter { !$0.key.hasPrefix("HEIMDALLR_") }
        ProcessHygiene.restoreFileLimit()
        for command in environment["BROWSER"]?.split(separator: ":") ?? [] {
            var words = command.split(separator: " ").map { String($0).replacing("%s", with: url) }
            if !command.contains("%s") { words.append(url) }
            if (try? ChildProgram(words, environment: withoutSecrets)) != nil { return true }
        }
        guard environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil,
            environment["SSH_CONNECTION"] == nil
        else { return false }
        return (try? ChildProgram(["xdg-open", url], environment: withoutSecrets)) != nil
    }
}
