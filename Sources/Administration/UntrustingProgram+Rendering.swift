import HTML
import Reports
import WireText

extension UntrustingProgram {
    var json: JSON {
        .object([
            .init("target", .string(target)), .init("caller", .string(caller)), .init("program", JSON(program)),
            .init("reason", .string(reason)), .init("advice", .string(advice)), .init("count", .number(count)),
            .init("seconds_ago", JSON(ago)),
        ])
    }

    var text: String {
        "\(title)\n    \(StatusPage.words(ago)) ago\(count > 1 ? ", \(count) times" : ""): \(reason)\n    what to do: \(advice)"
    }

    var html: HTML { "<li><strong>\(title)</strong>, \(StatusPage.words(ago)) ago: \(reason). \(advice).</li>" }

    /// `api.example.com:443  curl/7.88.1 of 127.0.0.1`
    var title: String { "\(target)  \(program ?? "a program") of \(caller)" }
}
