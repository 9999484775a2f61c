//! Suggests the known name nearest to a misspelled name.

/// The name of `known` with the fewest single-letter edits from `given`, if any is near.
pub(super) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let given = given.to_lowercase().replace('-', "_");
    known
        .iter()
        .map(|name| (distance(&given, name), *name))
        .min()
        .filter(|(edits, name)| *edits <= 1 + name.len() / 3)
        .map(|(_, name)| name)
}

/// Number of letters to insert, remove or exchange (Levenshtein's distance, row by row).
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, b) in right.bytes().enumerate() {
            let exchanged = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_of_textbook_pairs() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn only_near_names_are_offered() {
        let known = ["table_size", "tables", "range_size"];
        assert_eq!(nearest("table-sizes", &known), Some("table_size"));
        assert_eq!(nearest("Tabels", &known), Some("tables"));
        assert_eq!(nearest("buffer_pool", &known), None);
    }
}
