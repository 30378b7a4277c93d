// swift-tools-version: 6.1

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "StoreBenchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(path: "../BenchmarkKit"),
    .package(name: "Moments", path: "../../..", traits: ["SQLite", "PostgreSQL"]),
    .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
  ],
  targets: [
    .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .executableTarget(
      name: "StoreBenchmarks",
      dependencies: [
        "CLibPQ",
        .product(name: "BenchmarkKit", package: "BenchmarkKit"),
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: swiftSettings),
  ]
)
