internal import BenchmarkKit
internal import Foundation

/// Compares `SyncedRepository` and `MomentsRepo` with a hand-written repository.
@main
struct RepositoryBenchmarks {
  static func main() async {
    do {
      let arguments = CommandLine.arguments.dropFirst()
      if arguments.first == IdleKeysChild.flag, let description = arguments.dropFirst().first {
        return try await IdleKeysChild.perform(description)
      }
      let options = try Options(arguments)
      try await Workspace.withNew(of: "RepositoryBenchmarks", in: options.folder) { workspace in
        try await compare(Environment(options: options, workspace: workspace))
      }
    } catch {
      fail(error)
    }
  }

  private static func fail(_ error: any Error) -> Never {
    if let error = error as? UsageError { fail(BenchmarkError.usage(error.problem)) }
    Output.fail("RepositoryBenchmarks", error)
  }

  private static func compare(_ environment: Environment) async throws {
    let (options, base) = (environment.options, SystemLabel.byHand)
    var report = Report(conditions: Conditions(options.run), store: options.store)
    var runner = Runner(options.run, base: base) { fail(BenchmarkError.hung(system: $0, seconds: $1)) }
    let printsJSON = options.run.printsJSON
    if !printsJSON { Output.show("\(report.conditions.header(base: base)) Stores: \(options.store.rawValue).") }
    for row in options.rows {
      for comparison in row.comparisons(environment) {
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
