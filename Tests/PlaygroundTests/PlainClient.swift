import Dispatch
import Foundation

/// curl, which takes every answer as it is.
enum PlainClient {
    /// - Parameter body: empty for none.
    static func send(
        _ method: String, _ url: String, fields: [String: String] = [:], body: String = ""
    ) async throws -> PlainAnswer {
        var arguments = ["curl", "-sS", "-q", "--noproxy", "*", "--max-time", "20", "--include", "-H", "Expect:"]
        arguments += method == "HEAD" ? ["--head"] : ["-X", method]
        for (name, value) in fields { arguments += ["-H", "\(name): \(value)"] }
        if !body.isEmpty { arguments += ["--data-binary", "@-"] }
        let output = try await run(arguments + [url], input: Data(body.utf8))
        guard let answer = PlainAnswer(output) else { throw NoAnswer() }
        return answer
    }

    private static func run(_ arguments: [String], input: Data) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "curl").async {
                do {
                    let (process, stdin, stdout) = (Process(), Pipe(), Pipe())
                    process.executableURL = URL(filePath: "/usr/bin/env")
                    process.arguments = arguments
                    process.standardInput = stdin
                    process.standardOutput = stdout
                    process.standardError = FileHandle.nullDevice
                    try process.run()
                    try stdin.fileHandleForWriting.write(contentsOf: input)
                    try stdin.fileHandleForWriting.close()
                    let output = try stdout.fileHandleForReading.readToEnd() ?? Data()
                    process.waitUntilExit()
                    continuation.resume(returning: output)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }
}

/// No listener, or an answer that is not HTTP.
struct NoAnswer: Error {}

struct PlainAnswer {
    let status: Int
    let text: String
    private let fields: [String: String]

    init?(_ bytes: Data) {
        let whole = String(decoding: bytes, as: UTF8.self)
        guard let end = whole.firstRange(of: "\r\n\r\n") else { return nil }
        let lines = whole[..<end.lowerBound].split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, let status = Int(words[1]) else { return nil }
        self.status = status
        text = String(whole[end.upperBound...])
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
        }
        self.fields = fields
    }

    var body: Data { Data(text.utf8) }
    func field(_ name: String) -> String? { fields[name.lowercased()] }
}
