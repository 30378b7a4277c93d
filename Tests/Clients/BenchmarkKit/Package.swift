// swift-tools-version: 6.1

import PackageDescription

let package = Package(
  name: "BenchmarkKit",
  platforms: [.macOS(.v15)],
  products: [.library(name: "BenchmarkKit", targets: ["BenchmarkKit"])],
  targets: [
    .target(
      name: "BenchmarkKit",
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
      ]),
    .testTarget(name: "BenchmarkKitTests", dependencies: ["BenchmarkKit"]),
  ]
)
