/// A fault in the form of a secret, which its reader can't have meant. The descriptions never quote the secret.
public enum SecretForm: Sendable, Equatable, CustomStringConvertible {
    case byteOrderMark
    case utf16
    case nul
    case lineEnd

    /// - Parameters:
    ///   - bytes: a secret, without the line end of its file.
    ///   - hasLines: whether the secret may have several lines. Keys in PEM, JSON and XML may in any case.
    /// - Returns: `nil` for a secret in order, and for a raw key of 32 bytes.
    public init?(_ bytes: [UInt8], hasLines: Bool = false) {
        let zeros = bytes.count { $0 == 0 }
        let isRawKey = bytes.count == 32 && zeros < 8 && String(validating: bytes, as: UTF8.self) == nil
        guard !isRawKey else { return nil }
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            self = .byteOrderMark
        } else if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) || Self.alternates(bytes) {
            self = .utf16
        } else if zeros > 0 {
            self = .nul
        } else if !hasLines, Self.hasInnerLineEnd(bytes) {
            self = .lineEnd
        } else {
            return nil
        }
    }

    /// Whether every second byte is zero, and no other: Latin letters in UTF-16 without a mark.
    private static func alternates(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 4, bytes.count % 2 == 0, let first = bytes.firstIndex(of: 0), first < 2 else {
            return false
        }
        return bytes.indices.allSatisfy { (bytes[$0] == 0) == ($0 % 2 == first) }
    }

    private static func hasInnerLineEnd(_ bytes: [UInt8]) -> Bool {
        func isBlank(_ byte: UInt8) -> Bool { [0x09, 0x0A, 0x0D, 0x20].contains(byte) }
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return false }
        let isDocument = "{[<".utf8.contains(bytes[first]) || bytes.firstRange(of: Array("-----BEGIN ".utf8)) != nil
        return !isDocument && bytes[first...last].contains { $0 == 0x0A || $0 == 0x0D }
    }

    /// The fault, to follow the name of the secret.
    public var fault: String {
        switch self {
        case .byteOrderMark: "begins with a byte order mark, which is sent as part of the secret"
        case .utf16: "is in UTF-16, not in UTF-8"
        case .nul: "has a NUL byte"
        case .lineEnd: "has a line end inside, which is sent as part of the secret"
        }
    }

    public var remedy: String {
        switch self {
        case .byteOrderMark: "save it as UTF-8 without a byte order mark (BOM)"
        case .utf16: "save it as UTF-8"
        case .nul: "remove the byte, or write the secret anew"
        case .lineEnd: "write the secret on one line, and nothing else"
        }
    }

    public var description: String { "\(fault): \(remedy)" }
}
