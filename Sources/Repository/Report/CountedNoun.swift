/// Returns a number with its noun, such as “1 mutation” or “2 mutations”.
///
/// - Parameters:
///   - count: The number.
///   - noun: The singular of a noun whose plural only adds an “s”.
package func counted(_ count: Int, _ noun: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : "s")"
}
