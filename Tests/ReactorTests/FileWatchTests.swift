import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Reactor

@Suite("files are watched", .timeLimit(.minutes(1)))
struct FileWatchTests {
    private final class Told: Sendable {
        let paths = Mutex<[Set<String>]>([])
        func count(_ path: String) -> Int { paths.withLock { $0.count { $0.contains(path) } } }
    }

    private func watch(_ paths: Set<String>, isBlind: Bool = false) async throws -> (FileWatch, Told) {
        let told = Told()
        let watch = try FileWatch(interval: 100, isBlind: isBlind) { paths in told.paths.withLock { $0.append(paths) } }
        watch.watch(paths)
        try await eventually("each is told of once") { paths.allSatisfy { told.count($0) == 1 } }
        return (watch, told)
    }

    private func expectNews(_ told: Told, _ path: String, _ what: String, _ change: () throws -> Void) async throws {
        let before = try await settled("the events of the change before have come", for: .milliseconds(250)) {
            told.count(path)
        }
        try change()
        try await eventually(what) { told.count(path) > before }
    }

    @Test(arguments: [false, true])
    func `a file that is written, renamed over, removed or made again is noticed`(isBlind: Bool) async throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write("one", to: "file")
        let other = try folder.write("x", to: "other")
        let (watch, told) = try await watch([path, other], isBlind: isBlind)
        try await expectNews(told, path, "written") { try folder.write("two", to: "file") }
        try await expectNews(told, path, "renamed") {
            let next = try folder.write("three", to: "next")
            #expect(unsafe rename(next, path) == 0)
        }
        try await expectNews(told, path, "removed") { try FileManager.default.removeItem(atPath: path) }
        try await expectNews(told, path, "made again") { try folder.write("four", to: "file") }
        #expect(told.count(other) == 1)
        withExtendedLifetime(watch) {}
    }

    @Test func `a file behind symbolic links is noticed when one of a folder on the way changes`() async throws {
        let folder = try TemporaryDirectory()
        let manager = FileManager.default
        for version in ["v1", "v2"] {
            try manager.createDirectory(atPath: folder.path(of: version), withIntermediateDirectories: false)
            try folder.write(version, to: "\(version)/file")
        }
        try manager.createSymbolicLink(atPath: folder.path(of: "..data"), withDestinationPath: "v1")
        try manager.createSymbolicLink(atPath: folder.path(of: "mount"), withDestinationPath: folder.path(of: "..data"))
        let path = folder.path(of: "mount/file")
        let (watch, told) = try await watch([path])
        try manager.createSymbolicLink(atPath: folder.path(of: "tmp"), withDestinationPath: "v2")
        try await expectNews(told, path, "swapped") {
            #expect(unsafe rename(folder.path(of: "tmp"), folder.path(of: "..data")) == 0)
        }
        try await expectNews(told, path, "written") { try folder.write("new", to: "v2/file") }
        withExtendedLifetime(watch) {}
    }

    @Test func `a file in a folder that is made later is noticed by polling`() async throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "later/file")
        let (watch, told) = try await watch([path])
        try FileManager.default.createDirectory(atPath: folder.path(of: "later"), withIntermediateDirectories: false)
        try folder.write("x", to: "later/file")
        try await eventually("found") { told.count(path) >= 2 }
        withExtendedLifetime(watch) {}
    }

    @Test func `a file that is changed through another path, as a mount is, is noticed at once`() async throws {
        let (folder, elsewhere) = (try TemporaryDirectory(), try TemporaryDirectory())
        let path = try folder.write("one", to: "file")
        let other = elsewhere.path(of: "same")
        try FileManager.default.linkItem(atPath: path, toPath: other)
        let told = Told()
        let watch = try FileWatch(interval: 600_000) { paths in told.paths.withLock { $0.append(paths) } }
        watch.watch([path])
        try await eventually("it is told of once") { told.count(path) == 1 }
        try "two".write(toFile: other, atomically: false, encoding: .utf8)
        try await eventually("the change") { told.count(path) > 1 }
        withExtendedLifetime(watch) {}
    }
}
