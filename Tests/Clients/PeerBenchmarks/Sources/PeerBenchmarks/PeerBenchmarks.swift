internal import BenchmarkKit

/// A program that compares the multicast channel with its alternatives.
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

  private static func fail(_ error: any Error) -> Never {
    if let error = error as? UsageError { fail(BenchmarkError.usage(error.problem)) }
    Output.fail("PeerBenchmarks", error)
  }

  private static func compare(_ options: Options) async throws {
    let base = "Multicast"
    var report = Report(Conditions(options.runOptions))
    var runner = Runner(options.runOptions, base: base) { fail(BenchmarkError.hung(system: $0, seconds: $1)) }
    let printsJSON = options.runOptions.printsJSON
    if !printsJSON { Output.show(report.conditions.header(base: base)) }
    for row in options.rows {
      var results: [ComparisonResult<Setting>] = []
      for comparison in row.comparisons(options) where !comparison.contestants.isEmpty {
        let result = try await runner.run(comparison)
        results.append(result)
        if !printsJSON { Output.show("\n\(Table(result))") }
      }
      report.add(results)
      if !printsJSON { for cost in SubscriberCost.all(in: results) { Output.show("  \(cost)") } }
    }
    if printsJSON { Output.show(try Output.json(report)) }
  }
}
