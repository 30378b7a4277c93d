/// The names that a module declares `public`, as documentation links spell them, found in its text.
struct PublicSymbols {
  /// The types, and for each the names of its members.
  private(set) var members: [String: Set<String>] = [:]
  /// The types that are declared in no other type.
  private(set) var outerTypes: [String] = []

  init(module: String) throws {
    for path in Repository.files(in: "Sources/\(module)", named: ".swift") {
      add(source: try Repository.lines(of: path).joined(separator: "\n"))
    }
  }

  init(source: String) {
    add(source: source)
  }

  /// Whether a link such as `Type` or `Type/member(label:)` names something.
  ///
  /// A member of another module's type has the module's name in front: `Swift/Sequence/member()`.
  func contains(link: String) -> Bool {
    let parts = link.split(separator: "/").map(String.init).drop { ["Swift", "_Concurrency"].contains($0) }
    guard let type = parts.first, let names = members[type] else { return false }
    return parts.dropFirst().allSatisfy { names.contains($0) }
  }

  /// Adds what a file declares: its types, and their members.
  ///
  /// Simple on purpose: every member counts for every type that its file declares or extends.
  private mutating func add(source: String) {
    var isProtocol = false
    let code = source.split(separator: "\n").filter { !$0.drop(while: \.isWhitespace).hasPrefix("//") }
      .map { line in
        if line.hasPrefix("public protocol ") { isProtocol = true }
        if line.hasPrefix("}") { isProtocol = false }
        // The requirements of a public protocol are public without saying so.
        return isProtocol && line.hasPrefix("  ") ? "  public " + line.drop(while: \.isWhitespace) : line
      }
      .joined(separator: "\n")
    let typePattern = /^(public (?:final |indirect )*(?:class|struct|enum|actor|protocol|typealias)|extension) (\w+)/
    var types: Set<String> = []
    for match in code.matches(of: typePattern.anchorsMatchLineEndings()) {
      types.insert(String(match.2))
      if match.1 != "extension" { outerTypes.append(String(match.2)) }
    }
    var names = Set<String>()
    let namePattern =
      #/
      public\ (?:(?:private|internal|package)\(set\)\ |static\ |final\ |mutating\ |nonisolated\ )*
      (?:var|let|struct|class|enum|typealias)\ (\w+)
      /#
    for match in code.matches(of: namePattern) {
      names.insert(String(match.1))
    }
    for match in code.matches(of: /\n *case (\w+)(\(?)/) {
      names.insert(String(match.1))
      if match.2.isEmpty { continue }
      let labels = Self.parameters(after: code[match.range.upperBound...]).map { Self.payloadLabel(of: $0) }
      names.insert("\(match.1)(\(labels.map { $0 + ":" }.joined()))")
    }
    for match in code.matches(of: /public (?:static |final |mutating |nonisolated )*(?:func )?(\w+)(?:<[^(]*>)?\(/) {
      let labels = Self.parameters(after: code[match.range.upperBound...]).compactMap { Self.label(of: $0) }
      names.insert("\(match.1)(\(labels.map { $0 + ":" }.joined()))")
    }
    for type in types { members[type, default: []].formUnion(names) }
  }

  /// The label of a function's parameter; `nil` if it is blank.
  private static func label(of parameter: String) -> String? {
    parameter.split(whereSeparator: { $0.isWhitespace || $0 == ":" }).first.map { String($0) }
  }

  /// The label of a case's associated value, which may have none.
  private static func payloadLabel(of parameter: String) -> String {
    parameter.firstMatch(of: /^\s*(\w+)\s*:/).map { String($0.1) } ?? "_"
  }

  /// A list of parameters, read from behind its opening parenthesis.
  private static func parameters(after text: Substring) -> [String] {
    var parameters: [String] = []
    var depth = 1
    var parameter = ""
    for character in text {
      switch character {
      case "(", "<", "[": depth += 1
      case ")", ">", "]": depth -= parameter.hasSuffix("-") && character == ">" ? 0 : 1
      default: break
      }
      if depth == 0 || (depth == 1 && character == ",") {
        parameters.append(parameter)
        parameter = ""
        if depth == 0 { break }
      } else {
        parameter.append(character)
      }
    }
    return parameters
  }
}
