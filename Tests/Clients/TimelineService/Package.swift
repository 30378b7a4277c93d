// swift-tools-version: 6.2

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "TimelineService",
  platforms: [.macOS(.v15)],
  traits: [
    .trait(name: "SQLite", description: "Supports a store in a database file: --store sqlite:FILE"),
    .trait(name: "PostgreSQL", description: "Supports a store on a PostgreSQL server: --store postgresql://…"),
  ],
  dependencies: [
    .package(
      name: "Moments", path: "../../..",
      traits: [
        .trait(name: "SQLite", condition: .when(traits: ["SQLite"])),
        .trait(name: "PostgreSQL", condition: .when(traits: ["PostgreSQL"])),
      ]),
    .package(path: "../BenchmarkKit"),
    .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.0", traits: []),
    .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
  ],
  targets: [
    .target(
      name: "TimelineServer",
      dependencies: [
        .product(name: "DataStore", package: "Moments"),
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Moments", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "Repository", package: "Moments"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      resources: [.embedInCode("Resources/page.html")],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "TimelineService",
      dependencies: [
        "TimelineServer",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "DataStore", package: "Moments"),
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Moments", package: "Moments"),
        .product(name: "MomentsTesting", package: "Moments"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "LoadBenchmarks",
      dependencies: [
        "TimelineServer",
        .product(name: "BenchmarkKit", package: "BenchmarkKit"),
        .product(name: "DataStore", package: "Moments"),
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Moments", package: "Moments"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "TimelineServiceTests",
      dependencies: [
        "TimelineServer",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "DataStore", package: "Moments"),
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        .product(name: "Moments", package: "Moments"),
        .product(name: "MomentsTesting", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "Repository", package: "Moments"),
      ],
      swiftSettings: swiftSettings),
  ]
)
