// swift-tools-version: 6.1

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "RepositoryBenchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(path: "../BenchmarkKit"),
    .package(name: "Moments", path: "../../..", traits: ["SQLite", "PostgreSQL"]),
  ],
  targets: [
    .executableTarget(
      name: "RepositoryBenchmarks",
      dependencies: [
        .product(name: "BenchmarkKit", package: "BenchmarkKit"),
        .product(name: "DataStore", package: "Moments"),
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "Moments", package: "Moments"),
        .product(name: "MomentsTesting", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      swiftSettings: swiftSettings)
  ]
)
