import Foundation
import Glibc
import TestSupport

/// A TCP listener on loopback below HTTP; one thread a connection.
final class Listener: Sendable {
    let port: UInt16
    private let descriptor: Int32

    init(_ serve: @escaping @Sendable (Peer) -> Void) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        self.descriptor = descriptor
        var address = Peer.address(port: 0)
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(descriptor, $0, length) }
        }
        guard descriptor >= 0, bound == 0, listen(descriptor, 64) == 0 else { throw TestFailure("can't listen") }
        var actual = length
        _ = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &actual)
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            while true {
                let accepted = Glibc.accept(descriptor, nil, nil)
                guard accepted >= 0 else { return }
                Thread.detachNewThread {
                    let peer = Peer(accepted)
                    serve(peer)
                    peer.close()
                }
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        Glibc.close(descriptor)
    }
}

/// One connection, blocking.
final class Peer: Sendable {
    private let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    static func connect(port: UInt16) -> Peer? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = address(port: port)
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let peer = Peer(descriptor)
        return result == 0 ? peer : nil
    }

    func read() -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            count = max(0, unsafe recv(descriptor, buffer.baseAddress, 65_536, 0))
        }
    }

    func write(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let rest = Array(bytes[sent...])
            let count = unsafe send(descriptor, rest, rest.count, Int32(MSG_NOSIGNAL))
            guard count > 0 else { return }
            sent += count
        }
    }

    func write(_ text: String) { write(Array(text.utf8)) }

    /// The bytes up to the blank line, and those behind it.
    func readHead() -> (head: String, rest: [UInt8]) {
        var bytes: [UInt8] = []
        while true {
            if let end = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound {
                return (String(decoding: bytes[..<end], as: UTF8.self), Array(bytes[end...]))
            }
            let piece = read()
            if piece.isEmpty { return (String(decoding: bytes, as: UTF8.self), []) }
            bytes += piece
        }
    }

    func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Passes everything to `other` until one side ends.
    func relay(to other: Peer) {
        while true {
            let piece = read()
            if piece.isEmpty { return other.close() }
            other.write(piece)
        }
    }

    fileprivate static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }
}

extension Listener {
    /// An http proxy that tunnels to the requested port on loopback, and records the heads of its requests.
    static func tunnel(
        _ answer: String = "HTTP/1.1 200 Connected\r\n\r\n", heads: Recorder<String>
    ) throws -> Listener {
        try Listener { peer in
            let (head, rest) = peer.readHead()
            heads.append(head)
            let target = head.split(separator: " ").dropFirst().first ?? ""
            guard answer.contains(" 200 "), let port = target.split(separator: ":").last.flatMap({ UInt16($0) }),
                let other = Peer.connect(port: port)
            else { return peer.write(answer) }
            peer.write(answer)
            other.write(rest)
            Thread.detachNewThread { other.relay(to: peer) }
            peer.relay(to: other)
        }
    }
}
