// swift-tools-version: 6.2
import PackageDescription

/// What every target of ours is compiled with.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableExperimentalFeature("Lifetimes"),
]

/// What serves no requests is compiled for size: the stripped executable is 3 % smaller, and no request notices.
let cold = strict + [.unsafeFlags(["-Osize"], .when(configuration: .release))]

let package = Package(
    name: "heimdallr-proxy",
    products: [
        .executable(name: "heimdallr-proxy", targets: ["HeimdallrProxy"]),
        .library(name: "Heimdallr", targets: ["Heimdallr", "HeimdallrCurl"]),
        .library(name: "HeimdallrHTTPTypes", targets: ["HeimdallrHTTPTypes"]),
        .library(name: "HeimdallrFoundation", targets: ["HeimdallrFoundation"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
    ],
    targets: [
        // Top down: a target imports only targets of the floors below it. docs/architecture.md says what each is for.
        // The executable.
        .executableTarget(
            name: "HeimdallrProxy",
            dependencies: [
                "Proxy", "Administration", "Playground", "Configuration", "Cryptography", "Heimdallr", "HeimdallrCurl",
                "CLinux", "CurlTransport", "Enclosure", "FileSystem", "HTTPMessage", "PostgresStore", "QRCode",
                "Reactor", "Reports", "TLSServer", "WireText",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: cold),
        // What it is made of.
        .target(
            name: "Proxy",
            dependencies: [
                "Cryptography", "FileSystem", "HTTP2", "HTTPServer", "Reactor", "HTTPMessage", "Heimdallr",
                "CurlTransport",
                "Configuration", "Reports", "SigV4", "TLSServer", "WireText",
            ],
            resources: [.embedInCode("Answers/Problems.tsv"), .embedInCode("Forwarding/Limits.tsv")],
            swiftSettings: strict),
        .target(
            name: "Administration",
            dependencies: [
                "Cryptography", "FileSystem", "HTML", "HTTPMessage", "HTTPServer", "Heimdallr", "QRCode", "Reactor",
                "Reports", "WireText", .product(name: "Logging", package: "swift-log"),
            ],
            resources: [
                .embedInCode("Page/PageStyle.css"), .embedInCode("Page/PageScript.js"),
                .embedInCode("Page/PageIcon.svg"),
            ], swiftSettings: cold),
        .target(
            name: "Playground",
            dependencies: ["Cryptography", "HTML", "HTTPMessage", "HTTPServer", "Reactor", "WireText"],
            swiftSettings: cold),
        .target(
            name: "PostgresStore",
            dependencies: ["CLibpq", "Cryptography", "FileSystem", "Heimdallr", "Reactor", "SharedStore", "WireText"],
            resources: [.embedInCode("Remedies.tsv")], swiftSettings: cold),
        // Settings; the library's bridges and shared stores; the HTTP server.
        .target(
            name: "Configuration", dependencies: ["FileSystem", "HTTPMessage", "Heimdallr", "WireText", "CLibyaml"],
            resources: [.embedInCode("Schema/KeyDescriptions.tsv")], swiftSettings: cold),
        .target(
            name: "SharedStore", dependencies: ["Cryptography", "Heimdallr", "WireText"], swiftSettings: cold),
        .target(
            name: "HeimdallrCurl", dependencies: ["Heimdallr", "CurlTransport", "HTTPMessage", "WireText"],
            swiftSettings: strict),
        .target(
            name: "HeimdallrHTTPTypes",
            dependencies: ["Heimdallr", .product(name: "HTTPTypes", package: "swift-http-types")], swiftSettings: strict
        ),
        .target(name: "HeimdallrFoundation", dependencies: ["Heimdallr"], swiftSettings: strict),
        .target(
            name: "HTTPServer", dependencies: ["HTTP2", "HTTPMessage", "Reactor", "WireText"], swiftSettings: strict),
        // OAuth, transports, TLS, signatures.
        .target(
            name: "Heimdallr", dependencies: ["Cryptography", "FileSystem", "HTTPMessage", "SigV4", "WireText"],
            swiftSettings: strict),
        .target(
            name: "CurlTransport",
            dependencies: ["CLibcurl", "CLibgssapi", "FileSystem", "HTTPMessage", "Reactor", "WireText"],
            swiftSettings: strict),
        .target(name: "HTTP2", dependencies: ["CLibnghttp2", "Reactor", "WireText"], swiftSettings: strict),
        .target(
            name: "TLSServer", dependencies: ["CLibssl", "Cryptography", "Reactor", "WireText"], swiftSettings: strict),
        .target(name: "SigV4", dependencies: ["Cryptography", "WireText"], swiftSettings: strict),
        .target(
            name: "Enclosure", dependencies: ["CLinux", "FileSystem", "Reactor", "WireText"], swiftSettings: cold),
        // Messages, pages, the loop, cryptography.
        .target(name: "HTTPMessage", dependencies: ["WireText"], swiftSettings: strict),
        .target(name: "HTML", dependencies: ["WireText"], swiftSettings: cold),
        .target(name: "QRCode", dependencies: ["CLibqrencode"], swiftSettings: cold),
        .target(name: "Reactor", dependencies: ["CLinux"], swiftSettings: strict),
        .target(
            name: "Cryptography", dependencies: ["CLibcrypto", "CLinux", "FileSystem", "WireText"],
            swiftSettings: strict),
        // What imports nothing of ours.
        .target(name: "WireText", swiftSettings: strict),
        .target(name: "FileSystem", swiftSettings: strict),
        .target(name: "Reports", swiftSettings: strict),
        // C libraries.
        .systemLibrary(name: "CLibcrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibcurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLibgssapi"),
        .systemLibrary(name: "CLibnghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CLibpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CLibqrencode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        .systemLibrary(name: "CLibssl", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibyaml", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CLinux"),
        // Tests, in the same order, each behind the programs that it starts.
        .testTarget(
            name: "EndToEndTests", dependencies: ["HeimdallrProxy", "TestSupport"], exclude: ["Fixtures"],
            swiftSettings: strict),
        .testTarget(
            name: "HeimdallrProxyTests",
            dependencies: [
                "CurlTransport",
                "Heimdallr", "HeimdallrProxy", "Administration", "Configuration", "FileSystem", "Proxy", "Reactor",
                "Reports",
                "TLSServer", "TestSupport", "WireText",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: strict),
        .testTarget(
            name: "ProxyTests",
            dependencies: [
                "FileSystem",
                "Cryptography", "Proxy", "HTTP2", "HTTPMessage", "HTTPServer", "Configuration", "CurlTransport",
                "Heimdallr",
                "HeimdallrCurl", "Reactor", "SigV4", "Reports", "TLSServer", "TestSupport", "WireText",
            ], swiftSettings: strict),
        .testTarget(
            name: "AdministrationTests",
            dependencies: [
                "Administration", "Cryptography", "HTML", "HTTPMessage", "HTTPServer", "Heimdallr", "HeimdallrCurl",
                "HeimdallrProxy", "Reactor", "Reports", "TestSupport", "WireText",
            ],
            swiftSettings: strict),
        .testTarget(name: "PlaygroundTests", dependencies: ["Playground", "TestSupport"], swiftSettings: strict),
        .executableTarget(
            name: "PostgresContender", dependencies: ["Heimdallr", "PostgresStore", "SharedStore"],
            path: "Tests/PostgresContender", swiftSettings: strict),
        .testTarget(
            name: "PostgresStoreTests",
            dependencies: ["Heimdallr", "HeimdallrCurl", "PostgresContender", "PostgresStore", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPServerTests",
            dependencies: ["HTTP2", "HTTPServer", "HTTPMessage", "Reactor", "TestSupport", "WireText"],
            swiftSettings: strict),
        .executableTarget(
            name: "StoreContender", dependencies: ["Heimdallr", "HeimdallrCurl", "CurlTransport", "Reactor"],
            path: "Tests/StoreContender", swiftSettings: strict),
        .testTarget(
            name: "HeimdallrTests",
            dependencies: [
                "FileSystem",
                "Cryptography", "Heimdallr", "HeimdallrCurl", "HeimdallrFoundation", "HeimdallrHTTPTypes",
                "CurlTransport", "HTTPMessage", "Reactor", "SharedStore", "StoreContender", "TestSupport", "WireText",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: strict),
        // Runs the library's tasks on its scheduler, through hooks of Swift's run-time library. They need unsafe code.
        .executableTarget(
            name: "Simulation", dependencies: ["Administration", "FileSystem", "Heimdallr", "SharedStore"],
            path: "Tests/Simulation",
            swiftSettings: [
                .swiftLanguageMode(.v6), .treatAllWarnings(as: .error), .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ]),
        .testTarget(
            name: "ConfigurationTests",
            dependencies: ["Configuration", "HTTPMessage", "Heimdallr", "TestSupport", "WireText"],
            swiftSettings: strict),
        .testTarget(
            name: "CurlTransportTests",
            dependencies: ["CLibcurl", "CurlTransport", "HTTPMessage", "Reactor", "TestSupport", "WireText"],
            swiftSettings: strict
        ),
        .testTarget(name: "HTTP2Tests", dependencies: ["CLibnghttp2", "HTTP2", "Reactor"], swiftSettings: strict),
        .testTarget(
            name: "TLSServerTests",
            dependencies: ["CLibssl", "Cryptography", "HTTPServer", "Reactor", "TestSupport", "TLSServer"],
            swiftSettings: strict),
        .testTarget(name: "SigV4Tests", dependencies: ["SigV4", "TestSupport", "WireText"], swiftSettings: strict),
        .testTarget(
            name: "EnclosureTests", dependencies: ["Enclosure", "Reactor", "TestSupport", "WireText"],
            swiftSettings: strict),
        .testTarget(name: "HTTPMessageTests", dependencies: ["HTTPMessage", "WireText"], swiftSettings: strict),
        .testTarget(name: "HTMLTests", dependencies: ["HTML"], swiftSettings: strict),
        .testTarget(name: "QRCodeTests", dependencies: ["QRCode"], swiftSettings: strict),
        .testTarget(name: "ReactorTests", dependencies: ["Reactor", "TestSupport"], swiftSettings: strict),
        .executableTarget(
            name: "AuthorityProcess", dependencies: ["Cryptography", "WireText"], path: "Tests/AuthorityProcess",
            swiftSettings: strict),
        .testTarget(
            name: "CryptographyTests",
            dependencies: ["AuthorityProcess", "Cryptography", "FileSystem", "TestSupport", "WireText"],
            swiftSettings: strict),
        .testTarget(name: "WireTextTests", dependencies: ["WireText"], swiftSettings: strict),
        .testTarget(name: "FileSystemTests", dependencies: ["FileSystem", "TestSupport"], swiftSettings: strict),
        .target(
            name: "TestSupport", dependencies: ["Reactor"], path: "Tests/TestSupport", exclude: ["Fixtures"],
            swiftSettings: strict),
    ]
)
