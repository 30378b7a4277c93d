internal import Foundation

/// A comparison formatted as a table in plain text.
public struct Table: CustomStringConvertible {
  private let title: String
  private let systems: [SystemResult]

  /// Creates the table of a comparison.
  public init<Setting>(_ result: ComparisonResult<Setting>) {
    title = result.setting.description
    systems = result.systems
  }

  /// The title, a heading, and a line for each system.
  public var description: String {
    let rows = [heading] + systems.map(row)
    let widths = heading.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    let lines = rows.map { row in
      "  "
        + zip(row, widths).enumerated()
        .map { column, textAndWidth in
          column == 0 ? leftAligned(textAndWidth.0, textAndWidth.1) : rightAligned(textAndWidth.0, textAndWidth.1)
        }
        .joined(separator: "  ")
    }
    return ([title] + lines).joined(separator: "\n")
  }

  private var heading: [String] {
    let figures = systems.first?.figures ?? []
    return ["", "count"] + figures.flatMap { ["\($0.metric), \($0.unit)"] + ($0.isCompared ? ["×"] : []) }
  }

  private func row(_ system: SystemResult) -> [String] {
    [system.system, "\(system.count)"] + system.figures.flatMap(cells)
  }

  private func cells(_ figure: Figure) -> [String] {
    let medianAndRange = "\(Self.number(figure.median)) (\(Self.number(figure.minimum))–\(Self.number(figure.maximum)))"
    return [medianAndRange] + (figure.isCompared ? [figure.ratio.map(Self.number) ?? "–"] : [])
  }

  /// Formats a number with up to three decimal places, and fewer for larger numbers.
  public static func number(_ value: Double) -> String {
    let decimals =
      switch abs(value) {
      case 100...: 0
      case 10...: 1
      case 1...: 2
      default: 3
      }
    return String(format: "%.\(decimals)f", value)
  }

  private func leftAligned(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: width - text.count)
  }

  private func rightAligned(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: width - text.count) + text
  }
}
