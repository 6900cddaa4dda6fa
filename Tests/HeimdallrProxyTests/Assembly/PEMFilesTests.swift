import CurlTransport
import Foundation
import Reports
import Synchronization
import TestSupport
import Testing

@testable import Administration
@testable import HeimdallrProxy

@Suite("PEM files that change while they are in use", .timeLimit(.minutes(1)))
struct PEMFilesTests {
    @Test func `a broken file that several peers share is told once, and all of them keep their certificates`()
        async throws
    {
        let authority = try await PrivateCA()
        let folder = try TemporaryDirectory()
        let anchors = try folder.write(
            try String(contentsOfFile: authority.certificateFile, encoding: .utf8), to: "ca.pem")
        var groups: Set<TLSMaterial.Files> = []
        for name in ["one", "two"] {
            let pair = try await authority.client(name)
            groups.insert(.init(certificate: pair.certificateFile, key: pair.keyFile, anchors: anchors))
        }
        let counts = ReloadCounts()
        let changes = Atomic(0)
        let files = PEMFiles<TLSMaterial>(.clientCertificate, counts: counts, logger: nil) { _ in
            changes.add(1, ordering: .relaxed)
        }
        #expect(await files.add(groups).isEmpty)
        let before = groups.map { files[$0]?.certificateID }
        #expect(Set(before).count == 2 && !before.contains(0))
        #expect(files.certificateEnds(at: 0).count == 3)
        #expect(changes.load(ordering: .relaxed) == 0, "the first content is no news")

        try folder.write("rubbish", to: "ca.pem")
        for _ in 0..<2 { files.readAgain([anchors]) }
        #expect(files.unused.map(\.file) == [anchors])
        #expect(counts.snapshot[.file(anchors)]?.bad == 1)
        #expect(groups.map { files[$0]?.certificateID } == before)
        #expect(files.certificateEnds(at: 0).count == 3)
        #expect(changes.load(ordering: .relaxed) == 0)

        try folder.write(try String(contentsOfFile: authority.certificateFile, encoding: .utf8), to: "ca.pem")
        for _ in 0..<2 { files.readAgain([anchors]) }
        #expect(files.unused.isEmpty)
        #expect(counts.snapshot[.file(anchors)]?.good == 1)
        #expect(changes.load(ordering: .relaxed) == 2, "each peer's clients may ask again")
    }

    @Test func `files that a listener needs are used together or not at all`() async throws {
        let authority = try await PrivateCA()
        let (one, two) = (try await authority.server(), try await authority.server())
        let good = TLSMaterial.Files(certificate: one.certificateFile, key: one.keyFile)
        let bad = TLSMaterial.Files(certificate: two.certificateFile, key: one.keyFile)
        let files = PEMFiles<ListenerCertificate>(.listenerCertificate, counts: ReloadCounts(), logger: nil)
        #expect(await files.add([good, bad], ifGood: true).map(\.file) == [two.certificateFile])
        #expect(files.paths.isEmpty)
        #expect(await files.add([good], ifGood: true).isEmpty)
        #expect(files[good]?.context != nil)
        files.keep([])
        #expect(files[good] == nil)
    }
}
