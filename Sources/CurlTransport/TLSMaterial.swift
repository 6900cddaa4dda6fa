import Reactor
import Synchronization

/// The PEM files of one peer's TLS, with what stood in them when it was good last. Connections that are made from then on
/// use what `replace` was given last; idle ones made before serve nobody any more. Any thread.
public final class TLSMaterial: Sendable, Equatable {
    /// Where it comes from.
    public struct Files: Sendable, Hashable {
        public var certificate: String?
        public var key: String?
        public var anchors: String?

        public init(certificate: String? = nil, key: String? = nil, anchors: String? = nil) {
            self.certificate = certificate
            self.key = key
            self.anchors = anchors
        }

        public var all: [String] { [certificate, key, anchors].compactMap(\.self) }
    }

    /// A copy of each, in memory that only this process has a name for.
    final class Content: Sendable {
        let certificate: MemoryFile?
        let key: MemoryFile?
        let anchors: MemoryFile?
        let pair: UInt64

        init(certificate: MemoryFile?, key: MemoryFile?, anchors: MemoryFile?, pair: UInt64) {
            self.certificate = certificate
            self.key = key
            self.anchors = anchors
            self.pair = pair
        }
    }

    public let files: Files
    private let content = Mutex<Content?>(nil)
    private let count = Atomic<UInt64>(0)

    public init(_ files: Files) { self.files = files }

    /// Another number for each content that it had; 0: none, and libcurl reads the files itself.
    var generation: UInt64 { count.load(ordering: .relaxed) }
    var current: Content? { content.withLock { $0 } }
    /// Number of the client certificate that new connections show; 0: of none that is known here.
    public var pair: UInt64 { current?.pair ?? 0 }

    /// What stands in the files now, and is good.
    /// - Parameter pair: a number of the certificate; the same for the same certificate, in each material.
    public func replace(certificate: MemoryFile?, key: MemoryFile?, anchors: MemoryFile?, pair: UInt64) {
        let next = Content(certificate: certificate, key: key, anchors: anchors, pair: pair)
        content.withLock { $0 = next }
        count.add(1, ordering: .relaxed)
    }

    public static func == (left: TLSMaterial, right: TLSMaterial) -> Bool { left === right }
}
