import WireText

/// Shows the status of the running proxy again and again, a second apart at least.
struct StatusWatch {
    let options: AdminOptions
    let asJSON: Bool

    /// Blocks until Ctrl-C, or until nobody reads any more.
    /// - Throws: as `status` does, when there is no proxy to begin with.
    func run() throws {
        Interruption.watch()
        _ = try options.ask("GET", "/status")
        let paths = try options.candidates()
        if Terminal.showsOutput, !asJSON { draw(paths) } else { write(paths) }
    }

    // MARK: A terminal

    private func draw(_ paths: [String]) {
        let output = OutputDescriptor.standardOutput
        // A screen of its own, without a cursor; what was there before comes back.
        output.write("\u{1B}[?1049h\u{1B}[?25l")
        var last = ""
        while !Interruption.hasCome {
            last = Self.text(paths) ?? Self.lost(last)
            let size = Terminal.size
            // One write, each line over the one before it: nothing is blank in between.
            guard output.write(ScreenText.frame(last, rows: size.rows, columns: size.columns)) else { break }
            Terminal.pause(seconds: 1)
        }
        output.write("\u{1B}[?25h\u{1B}[?1049l" + last)
    }

    private static let lostLine = "The proxy does not answer any more; it is waited for. What was known last:\n\n"

    private static func lost(_ last: String) -> String { last.hasPrefix(lostLine) ? last : lostLine + last }

    // MARK: A pipe, or a file

    private func write(_ paths: [String]) {
        let output = OutputDescriptor.standardOutput
        var change = StatusChange()
        var isFirst = true
        while !Interruption.hasCome {
            let status = Self.json(paths)
            if change.take(status) {
                let block = asJSON ? Self.line(status) : Self.text(paths) ?? "The proxy does not answer.\n"
                guard output.write(isFirst || asJSON ? block : "\n" + block) else { return }
                isFirst = false
            }
            Terminal.pause(seconds: 1)
        }
    }

    private static func line(_ status: JSONValue?) -> String {
        guard let status else { return "{\"error\": \"the proxy does not answer\"}\n" }
        return JSON(status).line + "\n"
    }

    // MARK: Asking

    private static func text(_ paths: [String]) -> String? {
        answer(paths, "/status?format=text").map { String(decoding: $0, as: UTF8.self) }
    }

    private static func json(_ paths: [String]) -> JSONValue? {
        answer(paths, "/status").flatMap { try? JSONParser.parse($0) }
    }

    private static func answer(_ paths: [String], _ target: String) -> [UInt8]? {
        for path in paths {
            if let answer = try? AdminClient(path: path).send("GET", target), answer.status == 200 {
                return answer.body
            }
        }
        return nil
    }
}

/// Tells a status that says something new from one in which only clocks have gone on.
struct StatusChange {
    private var last: JSONValue??
    /// How long each client's token still lasts, in seconds.
    private var left: [String: Double] = [:]

    /// - Parameter status: what `/status` says; `nil`: nothing.
    /// - Returns: whether it is to be shown. The first one is.
    mutating func take(_ status: JSONValue?) -> Bool {
        let plain = status.map(Self.withoutClocks)
        let now = Self.lifetimes(status)
        // A token that lasts longer than before is another one.
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

/// A text as a terminal's screen shows it.
enum ScreenText {
    /// From the upper left corner on; what does not fit is cut, and said to be.
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
        // What an earlier, longer text left below.
        return frame + "\u{1B}[J"
    }
}
