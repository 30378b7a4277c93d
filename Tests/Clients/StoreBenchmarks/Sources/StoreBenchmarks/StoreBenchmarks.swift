internal import BenchmarkKit
internal import Foundation

/// Compares the durable stores with GRDB, and with files and libpq used by hand.
@main
struct StoreBenchmarks {
  static func main() async {
    do {
      let options = try Options(CommandLine.arguments.dropFirst())
      try await Workspace.withNew(of: "StoreBenchmarks", in: options.folder) { workspace in
        try await compare(options, in: workspace)
      }
    } catch {
      fail(error)
    }
  }

  private static func fail(_ error: any Error) -> Never {
    if let error = error as? UsageError { fail(BenchmarkError.usage(error.problem)) }
    Output.fail("StoreBenchmarks", error)
  }

  private static func compare(_ options: Options, in workspace: Workspace) async throws {
    let base = SystemName.grdb.label
    var report = Report(conditions: Conditions(options.run))
    var runner = Runner(options.run, base: base) { fail(BenchmarkError.hung(system: $0, seconds: $1)) }
    let printsJSON = options.run.printsJSON
    if !printsJSON { Output.show(report.conditions.header(base: base)) }
    for row in options.rows {
      for comparison in try await row.comparisons(options, workspace) {
        let result = try await runner.run(comparison)
        report.comparisons.append(result)
        if !printsJSON { Output.show("\n\(Table(result))") }
      }
    }
    if options.run.scale == 1 { report.goals = Goal.all(in: report.comparisons) }
    if printsJSON {
      Output.show(try Output.json(report))
    } else if let goals = report.goals {
      Output.show("\n" + goals.map(\.description).joined(separator: "\n"))
    }
  }
}
