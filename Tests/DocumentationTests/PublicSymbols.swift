/// The public names of a module, spelled as in documentation links and extracted from the module's source text.
struct PublicSymbols {
  /// The names of the members of each type.
  private(set) var members: [String: Set<String>] = [:]
  /// The types that are not nested in another type.
  private(set) var outerTypes: [String] = []

  init(module: String) throws {
    for path in SourceTree.files(in: "Sources/\(module)", withSuffix: ".swift") {
      add(source: try SourceTree.lines(of: path).joined(separator: "\n"))
    }
  }

  init(source: String) {
    add(source: source)
  }

  /// Whether a link such as `Type` or `Type/member(label:)` refers to a public symbol.
  ///
  /// A link to a member of a standard library type starts with the type's module: `Swift/Sequence/member()`.
  func contains(link: String) -> Bool {
    let parts = link.split(separator: "/").map(String.init).drop { ["Swift", "_Concurrency"].contains($0) }
    guard let type = parts.first, let names = members[type] else { return false }
    return parts.dropFirst().allSatisfy { names.contains($0) }
  }

  /// Adds the types that a file declares, and their members.
  ///
  /// This is deliberately simple: every member counts for every type that its file declares or extends.
  private mutating func add(source: String) {
    var isInPublicProtocol = false
    let code = source.split(separator: "\n").filter { !$0.drop(while: \.isWhitespace).hasPrefix("//") }
      .map { line in
        if line.hasPrefix("public protocol ") { isInPublicProtocol = true }
        if line.hasPrefix("}") { isInPublicProtocol = false }
        // The requirements of a public protocol are implicitly public.
        return isInPublicProtocol && line.hasPrefix("  ") ? "  public " + line.drop(while: \.isWhitespace) : line
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
    let functionPattern = /public (?:static |final |mutating |consuming |nonisolated )*(?:func )?(\w+)(?:<[^(]*>)?\(/
    for match in code.matches(of: functionPattern) {
      let labels = Self.parameters(after: code[match.range.upperBound...]).compactMap { Self.label(of: $0) }
      names.insert("\(match.1)(\(labels.map { $0 + ":" }.joined()))")
    }
    for type in types { members[type, default: []].formUnion(names) }
  }

  /// Returns the label of a function's parameter; `nil` if the text is blank.
  private static func label(of parameter: String) -> String? {
    parameter.split(whereSeparator: { $0.isWhitespace || $0 == ":" }).first.map { String($0) }
  }

  /// Returns the label of an associated value; `_` if it has none.
  private static func payloadLabel(of parameter: String) -> String {
    parameter.firstMatch(of: /^\s*(\w+)\s*:/).map { String($0.1) } ?? "_"
  }

  /// Returns the parameters of a declaration, given the text after its opening parenthesis.
  private static func parameters(after text: Substring) -> [String] {
    var parameters: [String] = []
    var depth = 1
    var parameter = ""
    for character in text {
      switch character {
      case "(", "<", "[": depth += 1
      // The `>` of `->` closes no bracket.
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
