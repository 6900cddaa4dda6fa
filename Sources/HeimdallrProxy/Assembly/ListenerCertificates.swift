import Administration
import Configuration
import Cryptography
import Logging
import Reactor
import Reports
import Synchronization
import TLSServer
import WireText

/// The operator's certificates of listeners and intercepted upstreams: the last good content of each group of files.
/// Any thread; reading blocks.
final class ListenerCertificates: Sendable {
    /// Usable content of a listener's files.
    private struct Reading {
        var content: FileContents
        var context: TLSServerContext
        /// End times of the certificates by file, in seconds since 1970.
        var ends: [CertificateEnd]
    }

    private let counts: ReloadCounts
    private let logger: Logger?
    private let readings = Mutex<[ListenerTLS: Reading]>([:])
    private let faults = Mutex<[ListenerTLS: String]>([:])

    init(counts: ReloadCounts, logger: Logger?) {
        self.counts = counts
        self.logger = logger
    }

    /// Reads the files that were not read yet. Called before `context` is used for a configuration.
    /// - Throws: `ConfigurationError`, since a listener without a certificate can serve nobody.
    func add(_ configuration: Configuration) async throws {
        let wanted = configuration.allServerTLS.filter { tls in readings.withLock { $0[tls] == nil } }
        guard !wanted.isEmpty else { return }
        let found = try await BlockingWork.run {
            try wanted.map { tls in
                do throws(UnusableFile) { return (tls, try Self.read(tls)) } catch {
                    throw ConfigurationError(problems: [error.problem])
                }
            }
        }
        for (tls, reading) in found {
            for path in tls.files { counts.expect(.file(path)) }
            readings.withLock { $0[tls] = reading }
        }
    }

    /// Forgets the files that this configuration does not use.
    func keep(_ configuration: Configuration) {
        let wanted = configuration.allServerTLS
        readings.withLock { readings in
            // The files may have other content when a later configuration uses them again.
            for (tls, reading) in readings where !wanted.contains(tls) { reading.context.clients?.withdraw() }
            readings = readings.filter { wanted.contains($0.key) }
        }
        faults.withLock { faults in faults = faults.filter { wanted.contains($0.key) } }
    }

    func context(_ tls: ListenerTLS) -> TLSServerContext? { readings.withLock { $0[tls]?.context } }

    var files: Set<String> { Set(readings.withLock { $0.keys.flatMap(\.files) }) }

    /// Files that can't be used now, each with the reason.
    var unused: [String] { faults.withLock { $0.map { "\($0.key.certFile): \($0.value)" } } }

    var ends: [CertificateEnd] { readings.withLock { $0.values.flatMap(\.ends) } }

    /// Reads each group of files with one of these paths again. After a fault, the last good content stays in use.
    func readAgain(_ paths: Set<String>) {
        for (tls, former) in readings.withLock({ $0 }) where !paths.isDisjoint(with: tls.files) {
            do throws(UnusableFile) {
                let next = try Self.read(tls, former: former.context.clients)
                let isKnown = readings.withLock { readings in
                    guard let former = readings[tls] else { return true }
                    readings[tls] = next
                    if former.context.clients !== next.context.clients { former.context.clients?.withdraw() }
                    return former.content == next.content
                }
                let wasFaulty = faults.withLock { $0.removeValue(forKey: tls) != nil }
                guard !isKnown || wasFaulty else { continue }
                for file in tls.files { counts.record(.file(file), isGood: true) }
                logger?.info(
                    "a certificate for programs was read again; new connections use it",
                    metadata: ["files": "\(tls.files.joined(separator: " "))"])
            } catch {
                guard faults.withLock({ $0.updateValue(error.reason, forKey: tls) }) != error.reason else { continue }
                counts.record(.file(error.file), isGood: false)
                logger?.warning(
                    "a file of a certificate for programs can't be used; its last good content stays in use",
                    metadata: ["file": "\(error.file)", "reason": "\(error.reason)"])
            }
        }
    }

    /// Returns the fault of a listener's files; `nil` if there is none. Blocks.
    static func fault(of tls: ListenerTLS) -> ConfigurationError.Problem? {
        do throws(UnusableFile) { _ = try read(tls) } catch { return error.problem }
        return nil
    }

    /// - Parameter former: stays in use if the authorities for client certificates are unchanged.
    private static func read(
        _ tls: ListenerTLS, former: ClientVerification? = nil
    ) throws(UnusableFile) -> Reading {
        let chainText = try UnusableFile.read(tls.certFile)
        let keyText = try UnusableFile.read(tls.keyFile)
        let chain = try certificates(chainText, tls.certFile)
        let key: SigningKey
        do throws(CryptographyError) { key = try SigningKey(text: keyText) } catch {
            throw UnusableFile(file: tls.keyFile, reason: "\(error)")
        }
        var ends =
            TLSFileCheck.ends(of: chainText).min().map {
                [CertificateEnd(.listenerCertificate, tls.certFile, at: $0)]
            } ?? []
        var clients: ClientVerification?
        var anchorText: SecretBytes?
        if let file = tls.clientCAFile {
            let anchors = try UnusableFile.read(file)
            let all = try certificates(anchors, file)
            clients = former?.anchors == all ? former : ClientVerification(anchors: all, isRequired: true)
            if let end = TLSFileCheck.ends(of: anchors).min() { ends.append(.init(.trustAnchors, file, at: end)) }
            anchorText = anchors
        }
        do throws(CryptographyError) {
            let context = try TLSServerContext(
                certificates: chain, key: key, session: Array("certificate \(tls.certFile)".utf8), clients: clients)
            return Reading(content: FileContents([chainText, keyText, anchorText]), context: context, ends: ends)
        } catch { throw UnusableFile(file: tls.certFile, reason: "\(error)") }
    }

    /// Returns the certificates of a PEM file as DER.
    private static func certificates(_ pem: SecretBytes, _ path: String) throws(UnusableFile) -> [[UInt8]] {
        do throws(CryptographyError) {
            let all = try X509Certificate.all(pem: pem.withSpan { [UInt8](copying: $0) })
            return try all.map { certificate throws(CryptographyError) in try certificate.der() }
        } catch { throw UnusableFile(file: path, reason: "\(error)") }
    }
}

extension UnusableFile {
    fileprivate var problem: ConfigurationError.Problem {
        var problem = ConfigurationError.Problem(
            file: file, message: "this file can't be used for TLS with programs: \(reason)")
        problem.mayPass = AwaitedFile.isAwaited(file)
        return problem
    }
}

extension ListenerTLS {
    /// Paths of all files.
    var files: [String] { [certFile, keyFile] + [clientCAFile].compactMap(\.self) }
}
