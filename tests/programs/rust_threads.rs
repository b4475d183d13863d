// Rust's standard library: threads, channels, barriers, a caught panic, files and time.
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let total = Arc::new(Mutex::new(0u64));
    let barrier = Arc::new(Barrier::new(3));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..3)
        .map(|i| {
            let (total, barrier, sender) = (total.clone(), barrier.clone(), sender.clone());
            thread::spawn(move || {
                barrier.wait();
                for k in 0..10000 {
                    *total.lock().unwrap() += k;
                }
                sender.send(i).unwrap();
                vec![1u8; 1 << 20].iter().map(|x| *x as usize).sum::<usize>()
            })
        })
        .collect();
    drop(sender);
    let mut got: Vec<i32> = receiver.iter().collect();
    got.sort();
    assert_eq!(got, [0, 1, 2]);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 1 << 20);
    }
    assert_eq!(*total.lock().unwrap(), 149985000);
    std::panic::set_hook(Box::new(|_| println!("a panic")));
    assert!(std::panic::catch_unwind(|| panic!()).is_err());
    let began = Instant::now();
    thread::sleep(Duration::from_millis(5));
    assert!(began.elapsed() >= Duration::from_millis(5));
    std::fs::write("/tmp/rust_threads", "text").unwrap();
    assert_eq!(std::fs::read_to_string("/tmp/rust_threads").unwrap(), "text");
    println!("threads, channels, panics and files");
}
