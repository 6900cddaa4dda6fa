import Foundation
import Testing
import WireText

@testable import Proxy

@Suite("Basic credentials are read as RFC 7617 and RFC 4648 have them, and not otherwise")
struct BasicCredentialsTests {
    private func read(_ value: String) -> BasicCredentials? { BasicCredentials(Array(value.utf8).span) }

    private func read(bytes: [UInt8]) -> BasicCredentials? {
        read("Basic " + Data(bytes).base64EncodedString())
    }

    @Test(arguments: [
        ("Aladdin:open sesame", "Aladdin", "open sesame"), ("a:", "a", ""), (":", "", ""), ("a:b:c", "a", "b:c"),
        ("tést:123£", "tést", "123£"),
    ])
    func `the first colon parts user name and password`(text: String, user: String, password: String) throws {
        let credentials = try #require(read(bytes: Array(text.utf8)))
        #expect(credentials.user == user && credentials.password == Array(password.utf8))
    }

    @Test func `credentials that are not UTF-8 are read as ISO 8859-1`() throws {
        let credentials = try #require(read(bytes: [0x74, 0xE9, 0x73, 0x74, 0x3A, 0x31, 0xA3, 0xFF]))
        #expect(credentials.user == "tést" && credentials.password == Array("1£ÿ".utf8))
    }

    @Test func `credentials with a control character are refused`() {
        for byte in Array(UInt8(0)...0x1F) + [0x7F] {
            #expect(read(bytes: [0x61, byte, 0x3A, 0x62]) == nil)
            #expect(read(bytes: [0x61, 0x3A, 0x62, byte]) == nil)
        }
    }

    @Test(arguments: [
        "", "Basic", "Basic ", "Basic  ", "Basic\tYTpi", "BasicYTpi", "Basic YTpi ", "Basic YTp", "Basic YTpi=",
        "Basic Y===",
        "Basic ====", "Basic YTp-", "Basic YTp_", "Basic YT pi", "Basic YTpi,YTpi", "Digest YTpi", "Basic YQ",
        "Basic YWI=",
        // Bits behind the last byte are zero in the canonical form.
        "Basic YTpiYx==",
    ])
    func `a field that is no canonical Basic credential is refused`(value: String) {
        #expect(read(value) == nil)
    }

    @Test func `base64 of any length is read as it was written, and one wrong character makes another text or none`() {
        var generator = SystemRandomNumberGenerator()
        for length in 0..<200 {
            let bytes = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            let text = Array(Data(bytes).base64EncodedString().utf8)
            #expect(Base64.decode(text, as: .padded) == bytes)
            for _ in 0..<20 where !text.isEmpty {
                var changed = text
                changed[Int.random(in: text.indices, using: &generator)] = UInt8.random(
                    in: .min ... .max, using: &generator)
                guard let read = Base64.decode(changed, as: .padded) else { continue }
                #expect(Array(Data(read).base64EncodedString().utf8) == changed)
            }
        }
    }
}
