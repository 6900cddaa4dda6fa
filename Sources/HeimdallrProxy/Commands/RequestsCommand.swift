import ArgumentParser
import WireText

struct RequestsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "requests",
        abstract: "Show the last requests of the running proxy, and why it refused some.",
        discussion: """
            Shows at most 200 requests, the oldest first: the end, status, duration, method, host and path without the \
            query, the client, the program, and the identifier that logs and answers show. Below a request that the \
            proxy answered itself stand the reason and what would change it. `heimdallr-proxy why ID` explains one of \
            them.

            With --follow it shows the requests as they end, until Ctrl-C. It waits while the proxy restarts.
            The proxy keeps no requests if admin.requests is false. The exit code is 1 without a running proxy.
            """)

    @OptionGroup var options: AdminOptions

    @Flag(name: .shortAndLong, help: "Show the requests as they end.")
    var follow = false

    @Flag(help: "Only requests that the proxy answered itself.")
    var refused = false

    @Flag(help: "Print one line of JSON for each request.")
    var json = false

    func run() throws {
        let answer = try options.ask("GET", "/requests")
        guard answer.status == 200 else {
            ErrorOutput.answer(ForeignText.lines(String(decoding: answer.body, as: UTF8.self)))
            throw ExitStatus.failure.error
        }
        var report = try? JSONParser.parse(answer.body)
        write(report, isFirst: true)
        guard follow else { return }
        Interruption.watch()
        let paths = try options.candidates()
        while !Interruption.hasCome {
            Terminal.pause(seconds: 1)
            let next = report?["next"]?.string ?? ""
            let target = "/requests?after=\(PercentEncoding.uri.encode(next))"
            guard let answer = AdminClient.first(of: paths, "GET", target), answer.status == 200 else { continue }
            report = try? JSONParser.parse(answer.body)
            guard write(report) else { return }
        }
    }

    /// - Returns: `false` once the reader of the output has gone.
    @discardableResult
    private func write(_ report: JSONValue?, isFirst: Bool = false) -> Bool {
        guard case .array(let requests)? = report?["requests"] else { return true }
        var text = ""
        if case .number(let missed)? = report?["missed"], missed != "0", !json, !isFirst {
            text += "(\(missed) more requests ended meanwhile)\n"
        }
        for request in requests where !refused || request["reason"] != nil {
            text += json ? JSON(request).line + "\n" : Self.lines(request)
        }
        return text.isEmpty || CommandOutput.write(ForeignText.lines(text), endsWithReader: follow)
    }

    static func lines(_ request: JSONValue) -> String {
        func text(_ name: String) -> String { request[name]?.string ?? "" }
        func number(_ name: String) -> String { if case .number(let text)? = request[name] { text } else { "" } }
        // The time of the day; the day is the reader's.
        let time = text("time").drop { $0 != "T" }.dropFirst().prefix { $0 != "Z" }
        let duration = Int(number("milliseconds").prefix { $0 != "." }) ?? 0
        let status = number("status") == "0" ? "cut" : number("status")
        var words = ["\(time)", status, "\(duration) ms", text("method"), text("host") + text("path")]
        if request["client"] != nil { words.append("client \(text("client"))") }
        words += ["caller", "program"].map(text).filter { !$0.isEmpty }
        words.append(text("id"))
        var lines = words.joined(separator: "  ") + "\n"
        guard request["reason"] != nil else {
            return request["cause"] == nil ? lines : lines + "    \(text("cause"))\n"
        }
        lines += "    refused: \(text("reason"))" + (request["cause"] == nil ? "" : ": \(text("cause"))") + "\n"
        if request["what_to_do"] != nil { lines += "    what to do: \(text("what_to_do"))\n" }
        return lines
    }
}
