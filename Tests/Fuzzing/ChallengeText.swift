import HTTPMessage

/// Each line is the value of one field.
func check(_ input: [UInt8]) {
    let values = input.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
    let readable = Challenge.readable(values)
    guard let challenges = Challenge.parse(values) else { return require(!readable.isWhole, "a part is left out") }
    var text = ""
    for challenge in challenges {
        require(!challenge.scheme.isEmpty, "a challenge has a scheme")
        require(challenge.token68 == nil || challenge.parameters.isEmpty, "token68 or parameters, not both")
        require(Set(challenge.parameters.map(\.name)).count == challenge.parameters.count, "no name twice")
        text += text.isEmpty ? challenge.scheme : ", " + challenge.scheme
        if let token = challenge.token68 { text += " " + token }
        text += challenge.parameters.isEmpty ? "" : " "
        text += challenge.parameters.map { parameter in
            require(!parameter.value.utf8.contains { $0 == 0 || $0 == 13 || $0 == 10 }, "no line ends in a value")
            return parameter.name + "=\""
                + parameter.value.reduce(into: "") { quoted, character in
                    for scalar in character.unicodeScalars {
                        if scalar == "\"" || scalar == "\\" { quoted += "\\" }
                        quoted.unicodeScalars.append(scalar)
                    }
                } + "\""
        }.joined(separator: ", ")
    }
    guard text.utf8.count <= 8 << 10 else { return }
    require(Challenge.parse([Array(text.utf8)]) == challenges, "written out, it reads the same")
}
