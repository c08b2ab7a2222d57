//! A stand-in for the CUDA driver's library, with the functions the runtime uses: memory is the host's, launches are
//! printed and not run. Built by `fake_cuda.rs` with rustc alone.

#![allow(non_snake_case, reason = "the driver's names")]
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    reason = "a test's helper, not part of a crate"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicUsize, Ordering::SeqCst};

type P = *mut c_void;
const OOM: c_int = 2;
const NOT_READY: c_int = 600;
const ILLEGAL_ADDRESS: c_int = 700;

/// Live streams, events, modules and allocations: what is left at the end was leaked.
static LIVE: AtomicI64 = AtomicI64::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
static STICKY: AtomicI32 = AtomicI32::new(0);
static SIZES: Mutex<Option<HashMap<u64, usize>>> = Mutex::new(None);
thread_local!(static CURRENT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

fn handle(out: *mut P) -> c_int {
    LIVE.fetch_add(1, SeqCst);
    unsafe { *out = NEXT.fetch_add(16, SeqCst) as P };
    state()
}
fn gone() -> c_int {
    LIVE.fetch_sub(1, SeqCst);
    0
}
fn state() -> c_int {
    if CURRENT.get() == 0 { 201 } else { STICKY.load(SeqCst) }
}

/// The driver's `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub struct NodeParams {
    func: P,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    params: *mut P,
    extra: P,
    kern: P,
    ctx: P,
}
/// Grid, block, and the low words of the parameters.
#[derive(Clone)]
struct Node([c_uint; 3], [c_uint; 3], Vec<u32>);
impl Node {
    unsafe fn new(p: *const NodeParams) -> Node {
        unsafe {
            let p = &*p;
            assert!(p.extra.is_null() && p.kern.is_null());
            let n = *p.func.cast::<usize>();
            Node(p.grid, p.block, (0..n).map(|i| *(*p.params.add(i)).cast::<u32>()).collect())
        }
    }
}
/// A graph under construction: its nodes, each with the one before it as the only dependency.
type Chain = Vec<Box<Node>>;
/// An instance: copies of the nodes, with the addresses of the originals.
type Exec = Vec<(usize, Node)>;

macro_rules! driver {
    ($($name:ident($($arg:ident: $ty:ty),*) $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            #[allow(unused_unsafe, unused_variables)]
            unsafe { $body }
        }
    )*};
}

driver! {
    cuDriverGetVersion(v: *mut c_int) { *v = 12080; 0 };
    cuInit(f: c_uint) 0;
    cuDeviceGetCount(n: *mut c_int) { *n = 1; 0 };
    cuDeviceGet(d: *mut c_int, i: c_int) { *d = i; 0 };
    cuDeviceGetName(s: *mut c_char, n: c_int, d: c_int) {
        std::ptr::copy_nonoverlapping(c"Fake GPU".as_ptr(), s, 9);
        0
    };
    cuDeviceTotalMem_v2(n: *mut usize, d: c_int) { *n = 1 << 30; 0 };
    cuDeviceGetAttribute(v: *mut c_int, what: c_int, d: c_int) {
        *v = match what { 75 => 9, 76 => 0, 115 => 1, _ => 0 };
        0
    };
    cuDevicePrimaryCtxRetain(c: *mut P, d: c_int) { *c = 0x77 as P; LIVE.fetch_add(1, SeqCst); 0 };
    cuDevicePrimaryCtxRelease_v2(d: c_int) { gone(); println!("closed, {} live", LIVE.load(SeqCst)); 0 };
    cuCtxGetCurrent(c: *mut P) { *c = CURRENT.get() as P; 0 };
    cuCtxSetCurrent(c: P) { CURRENT.set(c as usize); 0 };
    cuCtxSynchronize() state();
    cuStreamCreate(s: *mut P, f: c_uint) { assert_eq!(f, 1); handle(s) };
    cuStreamDestroy_v2(s: P) gone();
    cuStreamSynchronize(s: P) { assert!(!s.is_null()); state() };
    cuStreamWaitEvent(s: P, e: P, f: c_uint) { println!("{s:?} waits for {e:?}"); state() };
    cuEventCreate(e: *mut P, f: c_uint) handle(e);
    cuEventDestroy_v2(e: P) gone();
    cuEventRecord(e: P, s: P) state();
    cuEventSynchronize(e: P) state();
    cuEventQuery(e: P) if STICKY.load(SeqCst) != 0 { state() } else { NOT_READY };
    cuEventElapsedTime(ms: *mut f32, a: P, b: P) { *ms = 1.5; state() };
    cuDeviceGetDefaultMemPool(p: *mut P, d: c_int) { *p = 0x99 as P; 0 };
    cuMemPoolSetAttribute(p: P, what: c_int, v: P) { assert_eq!((what, *v.cast::<u64>()), (4, u64::MAX)); 0 };
    cuMemPoolGetAttribute(p: P, what: c_int, v: P) { *v.cast::<u64>() = 0; 0 };
    cuMemPoolTrimTo(p: P, n: usize) 0;
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) { *free = 1 << 29; *total = 1 << 30; state() };
    cuMemAllocAsync(a: *mut u64, n: usize, s: P) {
        assert!(!s.is_null() && n > 0);
        if n > 1 << 30 { return OOM; }
        LIVE.fetch_add(1, SeqCst);
        *a = alloc_zeroed(Layout::from_size_align(n, 256).unwrap()) as u64;
        SIZES.lock().unwrap().get_or_insert_default().insert(*a, n);
        state()
    };
    cuMemFreeAsync(a: u64, s: P) {
        let n = SIZES.lock().unwrap().get_or_insert_default().remove(&a).expect("freed once");
        dealloc(a as *mut u8, Layout::from_size_align(n, 256).unwrap());
        gone()
    };
    cuMemcpyHtoDAsync_v2(d: u64, h: P, n: usize, s: P) {
        std::ptr::copy_nonoverlapping(h.cast::<u8>(), d as *mut u8, n);
        state()
    };
    cuMemcpyDtoHAsync_v2(h: P, d: u64, n: usize, s: P) {
        std::ptr::copy_nonoverlapping(d as *const u8, h.cast::<u8>(), n);
        state()
    };
    cuMemcpyDtoDAsync_v2(d: u64, h: u64, n: usize, s: P) {
        std::ptr::copy_nonoverlapping(h as *const u8, d as *mut u8, n);
        state()
    };
    cuMemsetD8Async(d: u64, v: u8, n: usize, s: P) { std::ptr::write_bytes(d as *mut u8, v, n); state() };
    cuLinkCreate_v2(n: c_uint, o: *mut c_int, v: *mut P, s: *mut P) {
        // Four for the logs, verbosity, and the target: compute_90a.
        assert!(n == 6 && *o.add(5) == 9 && *v.add(5) as usize == 90 + 0x10000);
        LIVE.fetch_add(1, SeqCst);
        *s = Box::into_raw(Box::new(Vec::<u8>::new())).cast();
        state()
    };
    cuLinkAddData_v2(s: P, kind: c_int, data: P, n: usize, name: *const c_char, m: c_uint, o: *mut c_int, v: *mut P) {
        assert_eq!(kind, 1);
        (*s.cast::<Vec<u8>>()).extend(std::slice::from_raw_parts(data.cast::<u8>(), n));
        state()
    };
    cuLinkComplete(s: P, out: *mut P, n: *mut usize) {
        let v = &mut *s.cast::<Vec<u8>>();
        (*out, *n) = (v.as_mut_ptr().cast(), v.len());
        state()
    };
    cuLinkDestroy(s: P) { drop(Box::from_raw(s.cast::<Vec<u8>>())); gone() };
    cuModuleLoadData(m: *mut P, image: *const c_char) {
        // What the fake linker gives is the PTX itself.
        let text = CStr::from_ptr(image).to_str().unwrap();
        LIVE.fetch_add(1, SeqCst);
        let entry = text.split(".entry").nth(1).unwrap();
        let params = entry.split(')').next().unwrap().matches(".param").count();
        *m = Box::into_raw(Box::new(params)).cast();
        state()
    };
    cuModuleGetFunction(f: *mut P, m: P, name: *const c_char) {
        *f = m;
        println!("entry {}", CStr::from_ptr(name).to_str().unwrap());
        state()
    };
    cuModuleUnload(m: P) { drop(Box::from_raw(m.cast::<usize>())); gone() };
    cuFuncSetAttribute(f: P, what: c_int, v: c_int) state();
    cuOccupancyMaxActiveBlocksPerMultiprocessor(n: *mut c_int, f: P, threads: c_int, shared: usize) {
        *n = 7;
        state()
    };
    cuFuncGetAttribute(v: *mut c_int, what: c_int, f: P) { *v = what * 10; state() };
    cuLaunchKernel(
        f: P, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, s: P,
        params: *mut P, extra: *mut P
    ) {
        assert!(extra.is_null() && !s.is_null());
        let n = *f.cast::<usize>();
        let low: Vec<u32> = (0..n).map(|i| *(*params.add(i)).cast::<u32>()).collect();
        println!("launch grid {gx} {gy} {gz} block {bx} {by} {bz} parameters {n} last {}", low[n - 1]);
        if gx == 666 { STICKY.store(ILLEGAL_ADDRESS, SeqCst); return 0; }
        state()
    };
    cuGraphCreate(g: *mut P, f: c_uint) {
        assert_eq!(f, 0);
        LIVE.fetch_add(1, SeqCst);
        *g = Box::into_raw(Box::new(Chain::new())).cast();
        state()
    };
    cuGraphAddKernelNode_v2(n: *mut P, g: P, before: *const P, count: usize, p: *const NodeParams) {
        let chain = &mut *g.cast::<Chain>();
        let last = chain.last().map(|n| &raw const **n as usize);
        assert_eq!((count == 1).then(|| *before as usize), last);
        let mut node = Box::new(Node::new(p));
        *n = (&raw mut *node).cast();
        chain.push(node);
        state()
    };
    cuGraphInstantiateWithFlags(e: *mut P, g: P, f: u64) {
        assert_eq!(f, 0);
        let chain = &*g.cast::<Chain>();
        let exec: Exec = chain.iter().map(|n| (&raw const **n as usize, (**n).clone())).collect();
        LIVE.fetch_add(1, SeqCst);
        *e = Box::into_raw(Box::new(exec)).cast();
        state()
    };
    cuGraphExecKernelNodeSetParams_v2(e: P, n: P, p: *const NodeParams) {
        let exec = &mut *e.cast::<Exec>();
        let (_, node) = exec.iter_mut().find(|(original, _)| *original == n as usize).expect("a node of the graph");
        *node = Node::new(p);
        println!("update of a node");
        state()
    };
    cuGraphLaunch(e: P, s: P) {
        assert!(!s.is_null());
        let nodes = &*e.cast::<Exec>();
        println!("graph launch of {} kernels", nodes.len());
        for (_, Node(grid, block, low)) in nodes {
            println!("node grid {grid:?} block {block:?} first {} last {}", low[0], low[low.len() - 1]);
        }
        state()
    };
    cuGraphExecDestroy(e: P) { drop(Box::from_raw(e.cast::<Exec>())); gone() };
    cuGraphDestroy(g: P) { drop(Box::from_raw(g.cast::<Chain>())); gone() };
    cuGetErrorString(code: c_int, s: *mut *const c_char) {
        *s = if code == ILLEGAL_ADDRESS { c"an illegal memory access was encountered" } else { c"some error" }.as_ptr();
        0
    };
}
