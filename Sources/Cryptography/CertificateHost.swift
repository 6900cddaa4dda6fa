import Glibc
import WireText

enum CertificateHost: Hashable {
    /// An exact name in lower case.
    case name(String)
    /// 4 or 16 bytes, in network order.
    case address([UInt8])

    /// Reads a numeric address as inet_pton(3) does, or a name of the letters `a` to `z`, digits, hyphens and
    /// underscores, with the lengths of RFC 1035 section 2.3.4.
    init(_ text: String) throws(CryptographyError) {
        // inet_pton would read the text only up to a NUL.
        if !text.utf8.contains(0), let address = Self.address(text) {
            self = .address(address)
            return
        }
        let labels = text.utf8.split(separator: ASCII.dot, omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            (1...63).contains(label.count)
                && label.allSatisfy {
                    ASCII.isAlphanumeric($0) && ASCII.lowercased($0) == $0 || $0 == ASCII.hyphen
                        || $0 == ASCII.underscore
                }
        }
        guard isName, text.utf8.count <= 253 else { throw .certificateHost(text) }
        self = .name(text)
    }

    private static func address(_ text: String) -> [UInt8]? {
        for (family, size) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: size)
            if unsafe bytes.withUnsafeMutableBytes({ unsafe inet_pton(family, text, $0.baseAddress) }) == 1 {
                return bytes
            }
        }
        return nil
    }

    /// GeneralName of RFC 5280 section 4.2.1.6.
    var generalName: [UInt8] {
        switch self {
        case .name(let name): GeneralName.name(name)
        case .address(let bytes): GeneralName.address(bytes)
        }
    }
}

/// GeneralName of RFC 5280 section 4.2.1.6, as DER.
enum GeneralName {
    static func email(_ text: String) -> [UInt8] { DER.primitive(1, Array(text.utf8)) }
    static func name(_ text: String) -> [UInt8] { DER.primitive(2, Array(text.utf8)) }
    static func uri(_ text: String) -> [UInt8] { DER.primitive(6, Array(text.utf8)) }
    /// In a name constraint, the mask follows the address.
    static func address(_ bytes: [UInt8]) -> [UInt8] { DER.primitive(7, bytes) }
}
