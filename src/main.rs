fn main() {
    println!("{}", headwater::session::SHIPPED.len());
}
