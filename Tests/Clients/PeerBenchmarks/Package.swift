// swift-tools-version: 6.1

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "PeerBenchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(path: "../BenchmarkKit"),
    .package(name: "Moments", path: "../../.."),
    .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", exact: "0.14.0"),
  ],
  targets: [
    .executableTarget(
      name: "PeerBenchmarks",
      dependencies: [
        .product(name: "BenchmarkKit", package: "BenchmarkKit"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
        .product(name: "OpenCombine", package: "OpenCombine"),
      ],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "InstructionCounts",
      dependencies: [.product(name: "Multicast", package: "Moments")],
      swiftSettings: swiftSettings),
  ]
)
