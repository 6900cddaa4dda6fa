import ArgumentParser
import WireText

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the clients, their tokens and the upstreams of the running proxy.",
        discussion: """
            For each client it shows the state, the expiry of its token, the last success, the last error with the \
            remedy, and the number of waiting requests. It never shows a token or a secret.

            The exit code is 0 when all is well or the proxy has just started, 3 when something is degraded (a client \
            without a valid token, a store that can't be written, a proxy that stops), and 1 without a running proxy. \
            With --exit-zero it is 0 instead of 3, for scripts that only read.

            With --watch it updates a terminal once a second; into a pipe it writes a block after each change, or with \
            --json one line of JSON. It waits while the proxy restarts. Ctrl-C ends it, with exit code 0.
            """)

    @OptionGroup var options: AdminOptions

    @Flag(help: "Print JSON for programs.")
    var json = false

    @Flag(help: "Exit with 0 even if something is degraded.")
    var exitZero = false

    @Flag(name: .shortAndLong, help: "Show changes until Ctrl-C.")
    var watch = false

    func run() throws {
        if watch { return try repeatStatus() }
        try options.perform("GET", json ? "/status" : "/status?format=text", exitZero: exitZero)
    }

    /// Shows the status once a second. Blocks until Ctrl-C, or until the reader of the output has gone.
    /// - Throws: `ExitStatus.failure`, if no proxy answers at the beginning.
    private func repeatStatus() throws {
        Interruption.watch()
        _ = try options.ask("GET", "/status")
        let paths = try options.candidates()
        if Terminal.isStandardOutput, !json { draw(paths) } else { write(paths) }
    }

    private func draw(_ paths: [String]) {
        let output = CommandOutput.self
        // Switches to the alternate screen and hides the cursor. The former screen comes back at the end.
        output.write("\u{1B}[?1049h\u{1B}[?25l")
        var last = ""
        while !Interruption.hasCome {
            last = Self.text(paths) ?? Self.lost(last)
            let size = Terminal.size
            // One write replaces the former lines, so the screen does not flicker.
            guard output.write(ScreenText.frame(last, rows: size.rows, columns: size.columns)) else { break }
            Terminal.pause(seconds: 1)
        }
        output.write("\u{1B}[?25h\u{1B}[?1049l" + last)
    }

    private static let lostLine = "The proxy no longer answers. Its last known status:\n\n"

    private static func lost(_ last: String) -> String { last.hasPrefix(lostLine) ? last : lostLine + last }

    private func write(_ paths: [String]) {
        let output = CommandOutput.self
        var change = StatusChange()
        var isFirst = true
        while !Interruption.hasCome {
            let status = Self.status(paths)
            if change.take(status) {
                let block = json ? Self.line(status) : Self.text(paths) ?? "The proxy does not answer.\n"
                guard output.write(isFirst || json ? block : "\n" + block, endsWithReader: true) else { return }
                isFirst = false
            }
            Terminal.pause(seconds: 1)
        }
    }

    private static func line(_ status: JSONValue?) -> String {
        guard let status else { return "{\"error\": \"the proxy does not answer\"}\n" }
        return JSON(status).line + "\n"
    }

    private static func text(_ paths: [String]) -> String? {
        answer(paths, "/status?format=text").map { String(decoding: $0, as: UTF8.self) }
    }

    private static func status(_ paths: [String]) -> JSONValue? {
        answer(paths, "/status").flatMap { try? JSONParser.parse($0) }
    }

    private static func answer(_ paths: [String], _ target: String) -> [UInt8]? {
        guard let answer = AdminClient.first(of: paths, "GET", target), answer.status == 200 else { return nil }
        return answer.body
    }
}

/// Detects a changed status. A status in which only times differ is unchanged, unless a client has a new token.
struct StatusChange {
    private var last: JSONValue??
    /// Remaining lifetime of each client's token, in seconds.
    private var left: [String: Double] = [:]

    /// Returns whether to show this status. The first status is always shown.
    mutating func take(_ status: JSONValue?) -> Bool {
        let plain = status.map(Self.withoutClocks)
        let now = Self.lifetimes(status)
        // A remaining lifetime that has grown belongs to a new token.
        let isRenewed = now.contains { name, seconds in left[name].map { seconds > $0 + 1 } ?? false }
        left = now
        defer { last = .some(plain) }
        guard case .some(let before) = last else { return true }
        return before != plain || isRenewed
    }

    private static func withoutClocks(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let members):
            .object(members.filter { !$0.key.contains("seconds") }.mapValues(withoutClocks))
        case .array(let elements): .array(elements.map(withoutClocks))
        default: value
        }
    }

    private static func lifetimes(_ status: JSONValue?) -> [String: Double] {
        guard case .array(let clients)? = status?["clients"] else { return [:] }
        var found: [String: Double] = [:]
        for client in clients {
            guard let name = client["client"]?.string, case .number(let text)? = client["expires_in_seconds"] else {
                continue
            }
            found[name] = Double(text)
        }
        return found
    }
}

enum ScreenText {
    /// Returns the text as one screen: cuts long lines, and replaces the lines without room by their number.
    static func frame(_ text: String, rows: Int, columns: Int) -> String {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        let hidden = lines.count - (rows - 1)
        var frame = "\u{1B}[H"
        for line in lines.prefix(hidden > 0 ? rows - 2 : rows - 1) {
            frame += line.count > columns ? line.prefix(columns - 1) + "…" : line
            frame += "\u{1B}[K\r\n"
        }
        if hidden > 0 { frame += "… \(hidden + 1) more lines\u{1B}[K\r\n" }
        // Clears the rest of an earlier, longer text.
        return frame + "\u{1B}[J"
    }
}
