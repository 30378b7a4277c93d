internal import BenchmarkKit
internal import Foundation

/// Measures the timeline service under load, and compares it with ``UsualService``.
@main
struct LoadBenchmarks {
  static func main() async {
    do {
      let arguments = CommandLine.arguments.dropFirst()
      if arguments.first == ServiceProcess.flag, let description = arguments.dropFirst().first {
        return try await ServiceProcess.run(description)
      }
      let options = try Options(arguments)
      try await Workspace.withNew(of: "LoadBenchmarks", in: options.folder) { workspace in
        try await compare(options, workspace)
      }
    } catch let error as UsageError {
      fail(BenchmarkError.usage(error.problem))
    } catch {
      fail(error)
    }
  }

  private static func fail(_ error: any Error) -> Never { Output.fail("LoadBenchmarks", error) }

  private static func compare(_ options: Options, _ workspace: Workspace) async throws {
    try OpenFiles.raiseLimit()
    let base = ServiceKind.usual.label
    var report = Report(conditions: Conditions(options.run))
    var runner = Runner(options.run, base: base) { fail(BenchmarkError.hung(system: $0, seconds: $1)) }
    if !options.run.printsJSON {
      Output.show("\(report.conditions.header(base: base))")
      Output.show(options.summary)
    }
    for row in options.rows {
      let result = try await runner.run(Load(row, options, workspace).comparison)
      report.comparisons.append(result)
      if !options.run.printsJSON { Output.show("\n\(Table(result))") }
    }
    if options.run.scale == 1 { report.goals = Goal.all(in: report.comparisons) }
    if options.run.printsJSON {
      Output.show(try Output.json(report))
    } else if let goals = report.goals {
      Output.show("\n" + goals.map(\.description).joined(separator: "\n"))
    }
  }
}
