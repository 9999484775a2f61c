//! Foreign bytes never panic: what each fuzz target of the engine does, on its corpus, whole and
//! damaged. `engine/fuzz` calls the same functions for as long as one likes.

#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/engine.rs"]
mod targets;

#[test]
fn the_corpus_of_each_target_is_survived_whole_and_damaged() {
    corpus::run("histogram", targets::histogram);
    corpus::run("spec", targets::spec);
}
