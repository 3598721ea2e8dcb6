"""A system is one model, whatever its run is doing."""

from seq2seq_attn.evaluation.systems import System
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import translate_set
from tests.toy_run import SOURCE, TARGET, make_toy_run


def test_a_training_beside_an_evaluation_does_not_mix_two_models(tmp_path):
    """Hash, translations and scores are those of the model that was read first; reused translations
    too."""
    run = make_toy_run(tmp_path / "run")
    test_set = EvaluationSet("test", SOURCE, TARGET)

    def evaluate(*, is_overtaken):
        system = System("run", [run], device="cpu")
        model_hash = system.model_hash
        if is_overtaken:
            later = make_toy_run(tmp_path / "later", seed=5).load_best()
            run.save_best(later.tensors, {"update": 9})
        made = translate_set(system, test_set, hyps_dir=run.hyps_dir, reuse_hypotheses=True)
        about = system.describe()["model"]
        return model_hash, made.lines, system.model_hash, about, made.is_reused

    expected = evaluate(is_overtaken=False)
    assert evaluate(is_overtaken=False) == (*expected[:-1], True)
    (run.hyps_dir / "test.txt").unlink()
    assert evaluate(is_overtaken=True) == expected
    later = evaluate(is_overtaken=False)
    assert later[3] == {"update": 9}
    assert later[1] != expected[1]
    assert not later[-1]
