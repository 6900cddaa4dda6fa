import HTTPMessage
import Testing

/// SplitMix64: the same sequence in every run.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Thousands of damaged messages: nothing traps, and how a message is cut into pieces changes no answer.
@Suite("Mutations")
struct MutationTests {
    /// Pieces that matter to parsers, put into good messages at random places.
    static let splinters = [
        "\r", "\n", "\r\n", "\0", " ", "\t", ":", ";", ",", "=", "\"", "\\", "/", "?", "#", "%", "@", "[", "]", "0",
        "-", "+",
        "\u{B}", "\u{7F}", "\u{80}", "\u{FF}", "x", "HTTP/1.1", "http://", "chunked", "Content-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\n", "Connection: close, x\r\n", "Host: b\r\n", "\r\n\r\n", "99999999999999999999",
    ].map(wire)

    static func mutated(_ message: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
        var result = message
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let place = Int.random(in: 0...result.count, using: &generator)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: result.insert(contentsOf: splinters.randomElement(using: &generator) ?? [], at: place)
            case 1 where place < result.count: result[place] = UInt8.random(in: 0...255, using: &generator)
            case 2 where place < result.count: result.remove(at: place)
            case 3: result.removeSubrange(min(place, result.count - min(5, result.count))..<result.count)
            default:
                let length = min(Int.random(in: 0...20, using: &generator), result.count - place)
                result.insert(contentsOf: Array(result[place..<place + length]), at: place)
            }
        }
        return result
    }

    static let requests = [
        "GET http://localhost:27080/1k HTTP/1.1\r\nHost: localhost:27080\r\n\r\n",
        "\r\nPOST /?b HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\nConnection: x,close\r\nX:\t1\r\n\r\n",
        "PUT /a HTTP/1.1\r\nHost: 1.2.3.4\r\nContent-Length: 10\r\nExpect: 100-continue\r\nUpgrade: h2c\r\n\r\n",
        "CONNECT a.b.c:443 HTTP/1.1\r\nHost: a.b.c:443\r\nProxy-Connection: keep-alive\r\n\r\n",
        "OPTIONS * HTTP/1.0\r\nConnection: keep-alive, Te, foo\r\nTE: trailers\r\nFoo:\r\n\r\n",
    ].map(wire)

    @Test("a request head that is cut anywhere is read as one in one piece", arguments: [1, 2, 3, 4] as [UInt64])
    func requestHeads(seed: UInt64) {
        var generator = SeededGenerator(state: seed)
        let limits = HeadLimits(maxBytes: 200, maxFields: 5)
        var accepted = 0
        for _ in 0..<2_000 {
            let message = Self.mutated(Self.requests.randomElement(using: &generator) ?? [], using: &generator)
            var whole = RequestHead()
            let expected = outcome(&whole, message, limits: limits)
            if case .complete = expected {
                accepted += 1
                _ = try? RequestTarget(parsing: message.span, head: whole)
            }
            var pieces = RequestHead()
            var end = 0
            var last = Outcome.incomplete
            while end < message.count, last == .incomplete {
                end += min(Int.random(in: 1...8, using: &generator), message.count - end)
                last = outcome(&pieces, Array(message[..<end]), limits: limits)
            }
            #expect(last == expected)
            #expect(pieces.fields == whole.fields || last != .complete(end))
            #expect(pieces.framing == whole.framing)
        }
        #expect(accepted > 100)
    }

    static let bodies = [
        "5\r\nhello\r\n0\r\n\r\n", "5;a=b;c=\"d\\\"\"\r\nhello\r\nA\r\n0123456789\r\n0\r\nA: b\r\nHost: x\r\n\r\nGET",
        "001\r\na\r\n00\r\nGrpc-Status: 0\r\n\r\n",
    ].map(wire)

    @Test("a chunked body that is cut anywhere is read as one in one piece", arguments: [5, 6, 7] as [UInt64])
    func chunkedBodies(seed: UInt64) {
        var generator = SeededGenerator(state: seed)
        for _ in 0..<2_000 {
            let body = Self.mutated(Self.bodies.randomElement(using: &generator) ?? [], using: &generator)
            var decoder = ChunkedDecoder()
            let whole = Decoded([body], decoder: &decoder)
            var pieces: [[UInt8]] = []
            var start = 0
            while start < body.count {
                let end = start + min(Int.random(in: 1...5, using: &generator), body.count - start)
                pieces.append(Array(body[start..<end]))
                start = end
            }
            decoder.reset()
            var cut = Decoded(pieces, decoder: &decoder)
            if whole.error != nil { cut.consumed = whole.consumed }
            #expect(cut == whole)
        }
    }

    static let authorities = [
        "Example.com.:8080", "[2001:db8::1:0:0:1]:443", "[::ffff:1.2.3.4]", "127.0.0.1:80", "a_b-c.d",
    ]
    .map(wire)

    @Test("each accepted authority has one form that means the same")
    func mutatedAuthorities() throws {
        var generator = SeededGenerator(state: 8)
        for _ in 0..<5_000 {
            let text = Self.mutated(Self.authorities.randomElement(using: &generator) ?? [], using: &generator)
            guard let authority = try? Authority(parsing: text.span) else { continue }
            #expect(try Authority(parsing: authority.description) == authority)
        }
    }

    @Test("no mutated response head, trailer, challenge or path traps")
    func others() {
        var generator = SeededGenerator(state: 9)
        let lines = [
            "HTTP/1.1 200 OK\r\n", "HTTP/2 204 \r\n", "Content-Length: 10\r\n", "Connection: a, close\r\n", "X: y\r\n",
            "\r\n",
            "Transfer-Encoding: chunked\r\n",
        ].map(wire)
        let challenges = ["Bearer realm=\"a\\\"b\", error=invalid_token", "Negotiate abc==, Basic realm=x"].map(wire)
        let paths = ["/a/b%2ec/%7e/d;e?f", "/v1/%e0%a4%85/..%2f/x"].map(wire)
        for _ in 0..<5_000 {
            var head = ResponseHead()
            head.reset(requestWasHead: Bool.random(using: &generator))
            for line in [lines[Int.random(in: 0...1, using: &generator)]] + lines.shuffled(using: &generator) {
                let isDamaged = Int.random(in: 0..<6, using: &generator) == 0
                let line = isDamaged ? Self.mutated(line, using: &generator) : line
                guard (try? head.append(line: line.span, allowHTTP2: true)) != nil else { break }
                _ = try? TrailerRules.field(in: line.span)
            }
            _ = Challenge.parse([Self.mutated(challenges.randomElement(using: &generator) ?? [], using: &generator)])
            let path = Self.mutated(paths.randomElement(using: &generator) ?? [], using: &generator)
            if !PathRules.isAmbiguous(path.span) {
                let text = path.prefix { $0 != 0x3F }
                let matchesItself = PathRules.matches(prefix: Array(text), path: path.span)
                #expect(matchesItself)
            }
        }
    }
}
