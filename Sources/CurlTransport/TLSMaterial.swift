import Reactor
import Synchronization

/// The PEM files for TLS with one peer, and their last good content. `replace` sets the content for new connections.
/// Older idle connections are then not used again. Safe on any thread.
public final class TLSMaterial: Sendable, Equatable {
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

    /// Copies of the files in this process's memory.
    final class Content: Sendable {
        let certificate: MemoryFile?
        let key: MemoryFile?
        let anchors: MemoryFile?
        let certificateID: UInt64
        private let joined = Mutex<(system: MemoryFile, whole: MemoryFile)?>(nil)

        init(certificate: MemoryFile?, key: MemoryFile?, anchors: MemoryFile?, certificateID: UInt64) {
            self.certificate = certificate
            self.key = key
            self.anchors = anchors
            self.certificateID = certificateID
        }

        /// Returns the system's authorities and the anchors in one file. Connections share the file.
        func anchors(with system: MemoryFile) -> MemoryFile? {
            guard let anchors else { return nil }
            return joined.withLock { joined in
                if let joined, joined.system === system { return joined.whole }
                guard let whole = try? MemoryFile(joining: [system.path, anchors.path]) else { return nil }
                joined = (system, whole)
                return whole
            }
        }
    }

    public let files: Files
    private let content = Mutex<Content?>(nil)
    private let count = Atomic<UInt64>(0)

    public init(_ files: Files) { self.files = files }

    /// Version of the content; 0 while libcurl reads the files itself.
    var generation: UInt64 { count.load(ordering: .relaxed) }
    var current: Content? { content.withLock { $0 } }
    /// Number that identifies the client certificate for new connections; 0 if it is unknown.
    public var certificateID: UInt64 { current?.certificateID ?? 0 }

    /// Sets new, checked content.
    /// - Parameter certificateID: number that identifies the client certificate, from its file's digest.
    public func replace(certificate: MemoryFile?, key: MemoryFile?, anchors: MemoryFile?, certificateID: UInt64) {
        let next = Content(certificate: certificate, key: key, anchors: anchors, certificateID: certificateID)
        content.withLock { $0 = next }
        count.add(1, ordering: .relaxed)
    }

    public static func == (left: TLSMaterial, right: TLSMaterial) -> Bool { left === right }
}
