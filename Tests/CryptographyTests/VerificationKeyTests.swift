import Cryptography
import Testing
import WireText

/// Keys and signatures that another library made, and RFC 8032's first test.
@Suite struct `A verification key` {
    private static let message = Array("a message".utf8)
    private static let modulus =
        "lgxS5WbijqwxOh0bMIX3chBQspcmsd02qMLdo1BqQdrvGG+DwAyok5547qt8mCq237QUvEOYYmuz2lPyjk808I05"
        + "etlMmNzzbKmKnjnlP1WqpnpyBQvnEUTEwgLOAy0dBRkQGaWI8iSKuo78HN6iEmRTjjZpAkcDrAOzRw6/bZY2wW2I"
        + "v4OBQ3dv6u3PLK3EQcohPwzIx1G6yAeKkpSePgJSZ6kB5pGg/xIkWPwrW+ByZyz1GlInYLSMdlDHlRdmAckuRtqP"
        + "fEw+HvQGSGS+iqSq8YN1RH2AmWw09MClY/cKyaDMCnhMiiakXW6clJ2Y6ig9L0OKFRdg/YeP5ZVAOw=="
    private static let signature =
        "eE39NvtglldmcRqjVrnQSyGQ+2PcTvJvsokxOKVkiiMN1OZRKEpbjxiGC8KJY/l9j1QzJ0uiuqLkxy5CHI31jJf4"
        + "jzeDIQ9WsBFBbxsliSpENP4S5QBbC4oxBuKezizbWBf4Cg/IFsfCCftp5qXPSyIqWSFJVjm1s9OhjPau3WXytANd"
        + "GuvCGFQ0ROH1dTUg86BlbjBAq8Dn39m7I59aLQbgi59/LD6VkNu6Dnv5HOcW7kMozsOB5XwSp3fhC7jBuD0xxxj4"
        + "sYFbztinC5ZVssjBODc9Bn0/Y6bYCP2IpqO1goivUWo/MDFFl+GcIBusrp/aSTVD3l8wIsE13ExR1w=="
    private static let probabilistic =
        "eO/w/DKOs/Yidvst0Nhb1pYv5Zz92UnyYJfji8CGUJCYQiUslEIoXlSZtgeEL1BaxObP/WNy5+SiN487mwpPlxoS"
        + "TBRitbXQM+/mld9YvLCcEfaUDk6HEFyHy3G/jz6yUT/iDgJijqL0EcY2Be4YzoiHMY6rLYWmCPRwlrGBNuKPC6nm"
        + "45yLRge9dfeDf1l2EresFpigwc+FQsvxJSm1jI+w8p14Q/SAmOh+WU6U/CkAf/82hPI6ZtxD7qryyzeuouEWPn7K"
        + "xlUUv3T7nM8WF+K/Se6iZESXFLj07R6kyTYiK52R7NRBNe+qlax/MpqXp1FEgKmaUtVlHAYlfXnYow=="
    private static let shortSalt =
        "G9woLRNIDuxqlAC9QKoAF5oJZAyARv+/j1/tpYMN5TnD9vO33scGIcCiXwXMPR6xcSmExYOAeyk0bJSsX0SG6fLd"
        + "fkmpPsQLaMIQL3iBD0GDb6efAJTd6JpfhP4l7xdinqT4gXWGX83IYQ/QW++cXs7JDm6SC7nTAbUf3hKfwxbtP9if"
        + "hcaVpTtrrwhjX9Him1Fgre3MYH/w7710rfkSzUdS6LX7n9isuxhhVryJhIlPyn0EVUSdpWG867bUqbKgvLpvmKjW"
        + "BZZh03ARgtSkC47d+CkdzK3fiAuzDOvY6ZHa9+wALyUlhu1MNfUisUD3ASZKCGNeVmYDme4LlXK7Bg=="
    private static let x = "7WljGMl+lTPUW9nYAYo36Wuni60hXJHvgmu8qB3jhUM="
    private static let y = "EUdKM/kTvIP0h1JNUPVeyviRS/4WnDn6eEkyLKNN3zE="
    private static let elliptic =
        "ot7Ij/VuDxCocOtBmm1RH6QsJGznoldIzWXtXyVt+B+CFmnknqsXBBgCFWTrNkspc17oMzBSLhfeGx0lvk3wkQ=="

    private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.decode(Array(text.utf8), as: .either)) }

    @Test("a verification key takes what its private half has signed, and nothing else")
    func rsa() throws {
        let key = try VerificationKey(modulus: try bytes(Self.modulus), exponent: [1, 0, 1])
        let good = try bytes(Self.signature)
        #expect(try key.accepts(good, of: Self.message, by: .rsa(.sha256)))
        #expect(try !key.accepts(good, of: Self.message + [0], by: .rsa(.sha256)))
        #expect(try !key.accepts(good, of: Self.message, by: .rsa(.sha384)))
        #expect(try !key.accepts(good, of: Self.message, by: .rsaPSS(.sha256)))
        #expect(try !key.accepts(good, of: Self.message, by: .ed25519), "another kind of key")
        #expect(try !key.accepts(good, of: Self.message, by: .ecdsa(.p256)))
        for count in [0, 1, 255] {
            #expect(try !key.accepts(Array(good.prefix(count)), of: Self.message, by: .rsa(.sha256)))
        }
        for index in good.indices {
            var bad = good
            bad[index] ^= 0x10
            #expect(try !key.accepts(bad, of: Self.message, by: .rsa(.sha256)))
        }
    }

    @Test("an RSA-PSS signature needs a salt as long as its hash")
    func pss() throws {
        let key = try VerificationKey(modulus: [0] + (try bytes(Self.modulus)), exponent: [0, 1, 0, 1])
        #expect(try key.accepts(try bytes(Self.probabilistic), of: Self.message, by: .rsaPSS(.sha384)))
        #expect(try !key.accepts(try bytes(Self.shortSalt), of: Self.message, by: .rsaPSS(.sha384)))
    }

    @Test("a signature on a curve needs two numbers, none of them zero")
    func elliptic() throws {
        let key = try VerificationKey(.p256, x: try bytes(Self.x), y: try bytes(Self.y))
        let good = try bytes(Self.elliptic)
        #expect(try key.accepts(good, of: Self.message, by: .ecdsa(.p256)))
        #expect(try !key.accepts(good, of: Self.message, by: .ecdsa(.p384)))
        for bad in [[UInt8](repeating: 0, count: 64), good + [0], good.reversed(), Array(good.dropLast()), []] {
            #expect(try !key.accepts(bad, of: Self.message, by: .ecdsa(.p256)))
        }
    }

    @Test("an Ed25519 key takes RFC 8032's first signature")
    func edwards() throws {
        let key = try VerificationKey(ed25519: try bytes("11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="))
        let signature = try bytes(
            "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw==")
        #expect(try key.accepts(signature, of: [], by: .ed25519))
        #expect(try !key.accepts(signature, of: [0], by: .ed25519))
        #expect(try !key.accepts([UInt8](repeating: 0, count: 64), of: [], by: .ed25519))
    }

    @Test("a verification key that is short, even, not on its curve, or of another size is refused")
    func unusable() throws {
        let modulus = try bytes(Self.modulus)
        let (x, y) = (try bytes(Self.x), try bytes(Self.y))
        for make in [
            { try VerificationKey(modulus: Array(modulus.prefix(128)), exponent: [1, 0, 1]) },
            { try VerificationKey(modulus: modulus, exponent: [2]) },
            { try VerificationKey(modulus: modulus, exponent: [1]) },
            { try VerificationKey(modulus: modulus, exponent: []) },
            { try VerificationKey(modulus: [], exponent: [3]) },
            { try VerificationKey(modulus: [UInt8](repeating: 0xFF, count: 4096), exponent: [3]) },
            { try VerificationKey(.p256, x: y, y: x) }, { try VerificationKey(.p384, x: x, y: y) },
            { try VerificationKey(.p256, x: [UInt8](repeating: 0, count: 32), y: y) },
            { try VerificationKey(ed25519: []) }, { try VerificationKey(ed25519: x + [0]) },
        ] as [() throws -> VerificationKey] {
            #expect(throws: CryptographyError.self) { _ = try make() }
        }
    }
}
