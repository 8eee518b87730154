// Suppressions: ThreadSanitizer does not see the locks of gRPC, whose libraries are built without it.

#if defined(__SANITIZE_THREAD__)
/// To ThreadSanitizer everything on gRPC's threads is unordered. It therefore checks a program's own threads for races,
/// deadlocks and wrong use of locks, and not reactions for races. Their law: a session's state is touched only under
/// its lock.
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
         // Two users of a session release it, ordered by its count; an order that gRPC establishes before is invisible.
         "race:syncopate::server::rpc::Session::part\n";
}
#endif

#if defined(__SANITIZE_ADDRESS__)
/// A session that was cut off is never destroyed.
extern "C" const char* __lsan_default_suppressions() { return "leak:syncopate::server::rpc\nleak:libgrpc"; }
#endif
