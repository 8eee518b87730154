// Suppressions: ThreadSanitizer does not see the locks of gRPC, whose libraries are built without it.

#if defined(__SANITIZE_THREAD__)
/// Everything that gRPC's threads do seems unordered to it. So it looks for races between a program's own threads, for
/// deadlocks and for wrong use of locks, and not for races between reactions: there the law is that a session's state
/// is touched under its lock alone.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "race:libgrpc.so\n"
         "race:libgrpc++.so\n"
         "race:libgpr.so\n"
         "race:libabsl_\n"
         "race:libupb.so\n"
         "race:libcrypto.so\n"
         "race:^grpc::\n"
         // Two users of a session let go of it, whose count orders them; what gRPC orders before one of them is not
         // seen.
         "race:syncopate::server::rpc::Session::part\n";
}
#endif

#if defined(__SANITIZE_ADDRESS__)
/// A session that was cut off is never destroyed.
extern "C" const char* __lsan_default_suppressions() { return "leak:syncopate::server::rpc\nleak:libgrpc"; }
#endif
