internal import Foundation

/// Measures the multicast channel beside what it replaces.
@main
struct PeerBenchmarks {
  static func main() async {
    do {
      let arguments = CommandLine.arguments.dropFirst()
      if arguments.first == Child.flag, let description = arguments.dropFirst().first {
        try await Child.perform(description)
      } else {
        try await compare(Options(arguments))
      }
    } catch {
      fail(error)
    }
  }

  /// Ends the program with a message on the standard error.
  static func fail(_ error: any Error) -> Never {
    FileHandle.standardError.write(Data("PeerBenchmarks: \(error)\n".utf8))
    exit(1)
  }

  private static func compare(_ options: Options) async throws {
    var report = Report(options)
    var runner = Runner(options)
    if !options.printsJSON { show(report.header) }
    for row in options.rows {
      var results: [ComparisonResult] = []
      for comparison in row.comparisons(options) where !comparison.contestants.isEmpty {
        let result = try await runner.run(comparison)
        results.append(result)
        if !options.printsJSON { show("\n\(Table(result))") }
      }
      report.add(results)
      if !options.printsJSON { for cost in ReaderCost.all(in: results) { show("  \(cost)") } }
    }
    if options.printsJSON { show(try report.json()) }
  }

  /// Prints at once, also into a pipe.
  private static func show(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }
}
