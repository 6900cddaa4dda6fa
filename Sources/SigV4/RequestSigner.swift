internal import Cryptography
import WireText

/// AWS Signature Version 4 of a request's head, for one service in one region. No I/O; any thread.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>
public struct RequestSigner: Sendable {
    /// The signed parts of a request.
    public struct Request {
        public var method: [UInt8]
        public var target: SignableTarget
        /// Fields with names in lower case, including `host`. `sign` also signs the date, token and payload fields.
        public var fields: [(name: [UInt8], value: [UInt8])] = []
        /// Digest of the body, 64 hexadecimal digits, or a word such as `UNSIGNED-PAYLOAD`.
        public var payload: [UInt8]
        /// Whether the payload's digest is also sent in the field `X-Amz-Content-Sha256`.
        public var namesPayload: Bool

        public init(method: [UInt8], target: SignableTarget, payload: [UInt8], namesPayload: Bool) {
            self.method = method
            self.target = target
            self.payload = payload
            self.namesPayload = namesPayload
        }
    }

    public let region: String
    public let service: String
    /// Whether the service is S3: paths stay unchanged, a field has the payload's digest, and bodies may be unsigned.
    public let isStorage: Bool

    public init(region: String, service: String) {
        self.region = region
        self.service = service
        isStorage = ["s3", "s3-outposts", "s3-object-lambda"].contains(service)
    }

    /// Seconds since 1970.
    public static func now() -> Int { Int(WallClock.now()) }

    /// Value of `X-Amz-Date`: `20130524T000000Z`.
    public static func date(_ seconds: Int) -> [UInt8] {
        RFC3339.text(seconds).utf8.filter { $0 != ASCII.hyphen && $0 != ASCII.colon }
    }

    /// Whether a field is signed: `Host`, and fields that the service relies on. Later proxies may change others.
    public static func signs(_ lowercased: [UInt8]) -> Bool {
        lowercased.starts(with: "x-amz-".utf8) || signed.contains(lowercased)
    }

    private static let signed = ["host", "content-type", "content-md5"].map { Array($0.utf8) }

    /// - Parameter date: value of the request's date field.
    /// - Returns: the value of `Authorization`.
    public func sign(_ request: Request, with keys: SigningKeys, date: [UInt8]) throws -> [UInt8] {
        let (fields, names) = canonicalFields(request, keys, date)
        var text = Self.lines([
            request.method, isStorage ? request.target.path : Self.normalized(request.target.path),
            Self.canonicalQuery(request.target.parameters), fields, names, request.payload,
        ])
        defer { SecretBytes.wipe(&text) }
        let scope = Array(date.prefix(8)) + Array("/\(region)/\(service)/aws4_request".utf8)
        let toSign = Self.lines([Array("AWS4-HMAC-SHA256".utf8), date, scope, try Digest.sha256(text).hexadecimal])
        let signature = try keys.sign(toSign, scope: scope).hexadecimal
        return Array("AWS4-HMAC-SHA256 Credential=".utf8) + keys.accessKeyID + Array("/".utf8) + scope
            + Array(", SignedHeaders=".utf8) + names + Array(", Signature=".utf8) + signature
    }

    private static func lines(_ lines: [[UInt8]]) -> [UInt8] { Array(lines.joined(separator: [ASCII.lf])) }

    private func canonicalFields(
        _ request: Request, _ keys: SigningKeys, _ date: [UInt8]
    ) -> (lines: [UInt8], names: [UInt8]) {
        var fields = request.fields
        fields.append((Array("x-amz-date".utf8), date))
        if request.namesPayload { fields.append((Array("x-amz-content-sha256".utf8), request.payload)) }
        keys.withToken { fields.append((Array("x-amz-security-token".utf8), [UInt8](copying: $0))) }
        var names: [[UInt8]] = []
        for field in fields where !names.contains(field.name) { names.append(field.name) }
        names.sort { $0.lexicographicallyPrecedes($1) }
        var lines: [UInt8] = []
        for name in names {
            lines += name
            lines.append(ASCII.colon)
            var isFirst = true
            for field in fields where field.name == name {
                if !isFirst { lines.append(ASCII.comma) }
                isFirst = false
                Self.append(collapsed: field.value, to: &lines)
            }
            lines.append(ASCII.lf)
        }
        return (lines, Array(names.joined(separator: [ASCII.semicolon])))
    }

    /// Appends the words of `value`, separated by one space, without blanks at the ends.
    private static func append(collapsed value: [UInt8], to output: inout [UInt8]) {
        for (index, word) in value.split(whereSeparator: ASCII.isBlank).enumerated() {
            if index > 0 { output.append(ASCII.space) }
            output += word
        }
    }

    /// Removes dot segments and repeated slashes, and escapes the path again, as all services but S3 require.
    static func normalized(_ path: [UInt8]) -> [UInt8] {
        var segments: [ArraySlice<UInt8>] = []
        for segment in path.split(separator: ASCII.slash) {
            if segment == [ASCII.dot] { continue }
            if segment == [ASCII.dot, ASCII.dot] { _ = segments.popLast() } else { segments.append(segment) }
        }
        var output: [UInt8] = [ASCII.slash]
        for (index, segment) in segments.enumerated() {
            if index > 0 { output.append(ASCII.slash) }
            PercentEncoding.uri.encode(Array(segment).span) { output.append($0) }
        }
        if path.last == ASCII.slash, !segments.isEmpty { output.append(ASCII.slash) }
        return output
    }

    private static func canonicalQuery(_ parameters: [[UInt8]]) -> [UInt8] {
        let pairs = parameters.map { parameter -> (name: [UInt8], value: [UInt8]) in
            let parts = parameter.split(separator: ASCII.equals, maxSplits: 1, omittingEmptySubsequences: false)
            return (Array(parts[0]), parts.count > 1 ? Array(parts[1]) : [])
        }
        let sorted = pairs.sorted { one, other in
            one.name == other.name
                ? one.value.lexicographicallyPrecedes(other.value) : one.name.lexicographicallyPrecedes(other.name)
        }
        return Array(sorted.map { $0.name + [ASCII.equals] + $0.value }.joined(separator: [UInt8(ascii: "&")]))
    }
}
