import Configuration
import HTTPMessage
import Reactor
import WireText

/// Finds placeholders in what would leave the proxy. A placeholder that no credential replaces is never forwarded, to any
/// host: a program may send its `Authorization` to more hosts than one. Bodies are not searched. A value, for any thread.
struct PlaceholderGuard: Sendable {
    /// Long texts of the configuration, plain and within base64.
    private let finder: TextFinder
    /// The same, in lower case.
    private let hostFinder: TextFinder
    /// The bytes that occur in these texts. Any other byte may be escaped without hiding a text.
    private let letters: [Bool]
    /// Texts that other words may contain. They count only as the value of a credential.
    private let short: [Placeholder]
    /// `nil` for a command that only explains routes: it has no key, and each issued placeholder counts as good.
    let seal: PlaceholderSeal?
    /// Whether programs may hold issued placeholders: of this configuration, or of a former one of this process.
    let guardsIssued: Bool

    /// Shortest text that is looked for in all parts of a request.
    private static let least = 8

    /// - Parameter afterIssuing: whether a former configuration issued placeholders.
    /// - Returns: `nil` if there is no placeholder.
    init?(_ configuration: Configuration, _ seal: PlaceholderSeal? = nil, afterIssuing: Bool = false) {
        let rules = configuration.upstreams
        guardsIssued = afterIssuing || rules.contains { $0.takesIssued || !$0.issue.isEmpty }
        guard guardsIssued || rules.contains(where: { $0.placeholder != nil }) else { return nil }
        self.seal = seal
        let texts = Set(rules.filter { !$0.takesIssued }.compactMap(\.placeholder))
        let long = [PlaceholderSeal.prefix] + texts.filter { $0.utf8.count >= Self.least }.map { Array($0.utf8) }
        let patterns = Set(long.flatMap { [$0] + Self.encoded($0) })
        finder = TextFinder(patterns)
        hostFinder = TextFinder(Set(long.map { $0.map { ASCII.lowercased($0) } }))
        var letters = Array(repeating: false, count: 256)
        for byte in patterns.joined() { letters[Int(byte)] = true }
        self.letters = letters
        short = texts.filter { $0.utf8.count < Self.least }.map { Placeholder($0) }
    }

    /// Returns the digits that base64 of any text with `text` in it contains, for each position and alphabet.
    private static func encoded(_ text: [UInt8]) -> [[UInt8]] {
        (0..<3).flatMap { before in
            [Base64.Alphabet.standard, .url].map { alphabet in
                let digits = Base64.encode(Array(repeating: 0, count: before) + text, alphabet: alphabet).utf8
                // The first digits depend on the bytes in front, the last one on the bytes behind.
                return Array(digits.prefix((before + text.count) * 8 / 6).dropFirst([0, 2, 3][before]))
            }
        }
    }

    /// Whether the bytes contain a text: plain, escaped or within base64.
    func isIn(_ bytes: Span<UInt8>) -> Bool {
        if finder.isIn(bytes) { return true }
        var index = bytes.position(of: ASCII.percent)
        while index < bytes.count {
            if mayHide(bytes.extracting((index + 1)...)) { return isEscaped([UInt8](copying: bytes)) }
            index = bytes.position(of: ASCII.percent, from: index + 1)
        }
        return false
    }

    /// Levels of escapes that are looked at one by one, before all others are decoded at once. A text may be complete at
    /// any level, and a part of an escape at the next one.
    private static let levels = 4

    private func isEscaped(_ bytes: [UInt8]) -> Bool {
        var text = bytes
        for _ in 0..<Self.levels {
            let next = Self.decodedOnce(text)
            if next.count == text.count { return false }
            if finder.isIn(next.span) { return true }
            text = next
        }
        return finder.isIn(Self.decoded(text.span).span)
    }

    /// Whether a host contains a text. Hosts are sent in lower case.
    private func isIn(host: Span<UInt8>) -> Bool {
        var folded: [UInt8] = []
        folded.reserveCapacity(host.count)
        for index in host.indices { folded.append(ASCII.lowercased(host[index])) }
        return hostFinder.isIn(folded.span)
    }

    /// Whether a credential contains a text, or is a short one.
    func isIn(credential value: Span<UInt8>) -> Bool { isIn(value) || isInBasic(value) || isShort(value) }

    /// Whether name or password of HTTP Basic contain an escaped text, which its base64 hides.
    private func isInBasic(_ value: Span<UInt8>) -> Bool {
        guard let basic = BasicCredentials(value) else { return false }
        for part in [Array(basic.user.utf8), basic.password] where isIn(part.span) { return true }
        return false
    }

    private func isShort(_ value: Span<UInt8>) -> Bool {
        for text in short where text.isIn(fieldValue: value) { return true }
        return false
    }

    /// - Parameter bytes: bytes behind a percent sign.
    private func mayHide(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count > 1 else { return false }
        if bytes[0] | 0x20 == UInt8(ascii: "u") { return true }
        guard let high = ASCII.hexValue(bytes[0]), let low = ASCII.hexValue(bytes[1]) else { return false }
        let byte = high << 4 | low
        return byte == ASCII.percent || letters[Int(byte)]
    }

    private static func decodedOnce(_ bytes: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        func value(_ at: Int) -> UInt8? {
            guard at + 1 < bytes.count, let high = ASCII.hexValue(bytes[at]), let low = ASCII.hexValue(bytes[at + 1])
            else { return nil }
            return high << 4 | low
        }
        while index < bytes.count {
            if bytes[index] == ASCII.percent, let byte = value(index + 1) {
                decoded.append(byte)
                index += 3
            } else if bytes[index] == ASCII.percent, index + 1 < bytes.count,
                bytes[index + 1] | 0x20 == UInt8(ascii: "u"),
                let page = value(index + 2), let low = value(index + 4)
            {
                decoded.append(page == 0 ? low : 0xFF)
                index += 6
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded
    }

    private static func decoded(_ bytes: Span<UInt8>) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        for index in bytes.indices { Overrides.append(bytes[index], to: &decoded) }
        return decoded
    }
}

// Checks of a request.
extension PlaceholderGuard {
    /// Refuses a placeholder in the method, the host or the path, where no credential goes.
    /// - Returns: whether some other part of the head may have one.
    func look(at head: RequestHead, _ bytes: Span<UInt8>) throws(Problem) -> Bool {
        let address = Self.address(head, bytes)
        if isIn(host: bytes[head.host]) || isIn(host: bytes[address]) { throw Problem(.placeholderElsewhere) }
        guard isIn(bytes) else { return false }
        guard !isIn(bytes[head.method]), !isIn(bytes[head.host]), !isIn(bytes[address]) else {
            throw Problem(.placeholderElsewhere)
        }
        return true
    }

    /// Returns the target without its query.
    private static func address(_ head: RequestHead, _ bytes: Span<UInt8>) -> ByteRange {
        let start = Int(head.target.start)
        return ByteRange(start, start + bytes[head.target].position(of: ASCII.question))
    }

    /// Refuses a placeholder in the fields and parameters that the request keeps. They are those that `EditHeadPhase`
    /// copies.
    /// - Parameter isThere: result of `look`.
    func refuse(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ rules: InjectionRules, _ admitted: Admitted, isThere: Bool
    ) throws(Problem) {
        let entries = admitted.entries
        let dropped = rules.dropped(entries)
        for field in head.fields where field.known != .host {
            let isKept = field.isHopByHop ? field.known == .upgrade : !dropped.contains(bytes[field.name])
            guard isKept else { continue }
            let value = bytes[field.value]
            guard
                isThere && (isIn(bytes[field.name]) || isIn(value)) || isInBasic(value)
                    || (field.known == .authorization || field.known == .other) && isShort(value)
            else {
                continue
            }
            throw Problem(.placeholderElsewhere)
        }
        guard isThere, case .path(let path) = admitted.target else { return }
        guard rules.changesQuery(bytes[path], for: entries) else {
            if isIn(bytes[path]) { throw Problem(.placeholderElsewhere) }
            return
        }
        var kept = ByteBuffer(isSecret: true)
        QueryInjection.append(bytes[path], without: { rules.names($0, in: entries) }, &kept)
        if isIn(kept.bytes) { throw Problem(.placeholderElsewhere) }
    }
}
