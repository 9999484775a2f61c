//! Foreign bytes never panic: each fuzz target of the engine on its corpus, intact and damaged.
//! `engine/fuzz` runs the same functions without a time limit.

#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/engine.rs"]
mod targets;

#[test]
fn the_corpus_of_each_target_is_survived_whole_and_damaged() {
    corpus::run("histogram", targets::histogram);
    corpus::run("spec", targets::spec);
}
