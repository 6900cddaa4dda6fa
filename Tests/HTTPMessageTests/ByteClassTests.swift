import Testing
import WireText

@testable import HTTPMessage

@Suite struct `The table of byte classes` {
    @Test("the table says of token bytes and hexadecimal digits what the grammar says")
    func table() {
        for byte in UInt8.min...UInt8.max {
            #expect(ASCII.isToken(byte) == ASCII.isTokenByte(byte), "\(byte)")
            #expect(ASCII.isHexDigit(byte) == (ASCII.hexValue(byte) != nil), "\(byte)")
        }
    }
}
